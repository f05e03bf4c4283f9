package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// sourceFile is the configuration of FORGE's document, block by block, unchanged.
const sourceFile = "testdata/forge.toml"

// all is a notice filter for which a version uses every key.

// TestSourceNeedsReceivers: the blocks of the source document have two errors, each of
// which names the table to add.
func TestSourceNeedsReceivers(t *testing.T) {
	t.Parallel()
	_, err := Parse("forge.toml", []byte(readFile(t, sourceFile)), none)
	want := `forge.toml:8:1: alerts[0].notify names the notifier "pagerduty", which is not configured; add [alerts.notifications.pagerduty]
forge.toml:14:1: alerts[1].notify names the notifier "slack", which is not configured; add [alerts.notifications.slack]`
	if err == nil || err.Error() != want {
		t.Errorf("errors:\n%v\nwant:\n%s", err, want)
	}
}

// TestSourceIsAcceptedAsItsPageSays: with the tables of the page for those who come
// from FORGE, the source has no error and one warning, which the condition of that
// page ends.
func TestSourceIsAcceptedAsItsPageSays(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../../docs/coming-from/others.md")
	var blocks []string
	for _, found := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^ +`).ReplaceAllString(found[1], ""))
	}
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks, want the tables and the condition", len(blocks))
	}
	text := readFile(t, sourceFile) + blocks[0]
	if notices := mustParse(t, text, none).Notices(); len(notices) != 1 || !strings.Contains(notices[0], "only tenure-server reads them") {
		t.Errorf("notices %q; want one", notices)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
