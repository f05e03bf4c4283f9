package config

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
)

const page = "../../../docs/reference/configuration.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docRow is the row that the page has for a key.
func docRow(k *key) string {
	standard := k.note
	if k.fallback != nil {
		standard = docpage.Code(literal(k.fallback))
	}
	if k.many() {
		return docpage.Row(docpage.Code(k.path), valueName(k.kind), standard)
	}
	flag, reload := "", ""
	if k.flag != "" {
		flag = "--" + k.flag
	}
	if k.live {
		reload = "yes"
	}
	return docpage.Row(docpage.Code(k.path), valueName(k.kind), standard, docpage.Code(flag), docpage.Code(k.variables...), reload)
}

// valueName is what a kind of values is called in a table.
func valueName(k kind) string {
	name, _, _ := strings.Cut(k.String(), " like ")
	return strings.TrimPrefix(strings.TrimPrefix(name, "a "), "an ")
}

// TestReferenceListsEveryKey: the page has the row of every key, in the order of
// the table of keys.
func TestReferenceListsEveryKey(t *testing.T) {
	t.Parallel()
	single := docpage.Head("key", "value", "default", "flag", "variable", "reload")
	many := docpage.Head("key", "value", "default")
	for i := range keys {
		if k := &keys[i]; k.many() {
			many += docRow(k)
		} else {
			single += docRow(k)
		}
	}
	text := single + "\nUsers, links, alerts, notifiers and schedules. `[]` follows a list of tables (`[[alerts]]`), and `*` is a name of your choice. These\n" +
		"keys have no flags and no variables, and all of them but links are reloaded.\n\n" + many
	if err := docpage.CheckReference(page, text); err != nil {
		t.Error(err)
	}
}

// TestPageExampleHasEveryKey: the example of the page is accepted, and shows every key.
func TestPageExampleHasEveryKey(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(readPage(t), "```toml\n# tenure.toml")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the page has no example that begins with # tenure.toml")
	}
	file := mustParse(t, example, variables("DB_PASSWORD", "x", "SLACK_WEBHOOK", "https://hooks.example/x"))
	shown := map[*key]bool{}
	for s := range maps.Values(file.settings) {
		shown[s.key] = true
	}
	for i := range keys {
		k := &keys[i]
		if !shown[k] && !strings.Contains(example, "# "+k.path[strings.LastIndexByte(k.path, '.')+1:]+" = ") {
			t.Errorf("the example lacks %s", k.path)
		}
	}
	for _, notice := range file.Notices() {
		if !strings.HasSuffix(notice, "only tenure-server reads them") {
			t.Errorf("the example is doubtful: %s", notice)
		}
	}
}
