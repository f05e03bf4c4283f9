package layout

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
)

const (
	documentWords   = 45_600 // at most, in docs
	unreleasedWords = 1_600  // at most, in the changelog
)

// TestDocumentsStayShort bounds the words that people have written in docs. With -v it
// lists them by page.
func TestDocumentsStayShort(t *testing.T) {
	words, total := map[string]int{}, 0
	for name, page := range readPages(t) {
		if strings.HasPrefix(name, "docs/") {
			words[name] = docpage.Words(page)
			total += words[name]
		}
	}
	if len(words) < 40 {
		t.Fatalf("only %d pages were found: the test looks in the wrong place", len(words))
	}
	for _, name := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return words[b] - words[a] }) {
		t.Logf("%6d %s", words[name], name)
	}
	t.Logf("%6d words on %d pages", total, len(words))
	if total > documentWords {
		t.Errorf("the documents have %d words, want at most %d: link to what another page says", total, documentWords)
	}
}

// A merge that keeps the lines of both sides must not bring back what was merged into
// one entry.
func TestUnreleasedChangesStayShort(t *testing.T) {
	_, rest, found := strings.Cut(readPage(t, "CHANGELOG.md"), "\n## [Unreleased]\n")
	if !found {
		t.Fatal("CHANGELOG.md has no section [Unreleased]")
	}
	section, _, _ := strings.Cut(rest, "\n## [")
	if words := docpage.Words(section); words > unreleasedWords {
		t.Errorf("[Unreleased] has %d words, want at most %d: describe one thing in one entry, and leave details to the documents", words, unreleasedWords)
	}
}
