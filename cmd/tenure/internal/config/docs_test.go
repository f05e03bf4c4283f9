package config

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const page = "../../../../docs/reference/configuration.md"

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
	code := func(texts ...string) string {
		for i := range texts {
			if texts[i] != "" {
				texts[i] = "`" + texts[i] + "`"
			}
		}
		return strings.Join(texts, ", ")
	}
	standard := k.note
	if k.fallback != nil {
		standard = code(literal(k.fallback))
	}
	cells := []string{code(k.path), k.kind.String(), standard}
	if !k.many() {
		flag, reload := "", ""
		if k.flag != "" {
			flag = "--" + k.flag
		}
		if k.live {
			reload = "yes"
		}
		cells = []string{code(k.path), standard, code(flag), code(slices.Clone(k.variables)...), reload}
	}
	row := "|"
	for _, cell := range cells {
		row += strings.TrimRight(" "+cell, " ") + " |"
	}
	return row
}

// TestPageHasEveryKey: the page has the row of every key, in the order of the
// table of keys, and no other row of a key.
func TestPageHasEveryKey(t *testing.T) {
	t.Parallel()
	var rows, want []string
	for line := range strings.Lines(readPage(t)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if strings.HasPrefix(line, "| `") && strings.Contains(name, ".") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	for i := range keys {
		want = append(want, docRow(&keys[i]))
	}
	for _, row := range want {
		if !slices.Contains(rows, row) {
			t.Errorf("the page lacks %s", row)
		}
	}
	for _, row := range rows {
		if !slices.Contains(want, row) {
			t.Errorf("the page has %s", row)
		}
	}
	if !t.Failed() && !slices.Equal(rows, want) {
		t.Error("the rows of the page are not in the order of the table of keys")
	}
}

// TestPageExample: the example of the page is accepted, and shows every key.
func TestPageExample(t *testing.T) {
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
	var names []string
	for i := range keys {
		names = append(names, keys[i].flag, keys[i].evidence)
	}
	notices := file.Notices(func(name string) bool { return name != "" && slices.Contains(names, name) })
	for _, notice := range notices {
		if !strings.HasSuffix(notice, "is not used by this version") {
			t.Errorf("the example is doubtful: %s", notice)
		}
	}
}
