package layout

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
)

const (
	documentWords   = 41_000 // at most, in docs
	guideWords      = 29_500 // at most, without the pages on neighbors
	proofWords      = 3_500  // at most, on the pages that proofs matches
	threatWords     = 2_000  // at most, in the threat model
	unreleasedWords = 1_600  // at most, in the changelog
)

// proofs matches the pages on how Tenure is proven and sized. Users read them to
// judge Tenure, not to use it. So their words are counted apart: a longer record of
// faults must not push a step out of a how-to.
var proofs = regexp.MustCompile(`^docs/(explanation/(how-it-is-proven|track-record)|reference/capacity)\.md$`)

// neighbors matches the pages on other systems: on moves from them, on what stands between
// Tenure and its database, and on what reaches a leader.
var neighbors = regexp.MustCompile(`^docs/(coming-from/|explanation/high-availability|reference/(http|tested-with)|` +
	`howto/(limit-leaders|managed-servers|reach-the-leader|recipes|replicate|share-connections|use-adapters))`)

// TestDocumentsStayShort bounds the words that people have written in docs. With -v it
// lists them by page.
func TestDocumentsStayShort(t *testing.T) {
	words, total, guide, proof := map[string]int{}, 0, 0, 0
	for name, page := range readPages(t) {
		if strings.HasPrefix(name, "docs/") {
			words[name] = docpage.Words(page)
			if proofs.MatchString(name) {
				proof += words[name]
				continue
			}
			total += words[name]
			if !neighbors.MatchString(name) {
				guide += words[name]
			}
		}
	}
	if len(words) < 40 {
		t.Fatalf("only %d pages were found: the test looks in the wrong place", len(words))
	}
	for _, name := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return words[b] - words[a] }) {
		t.Logf("%6d %s", words[name], name)
	}
	t.Logf("%6d words on %d pages, %d without those on neighbors, %d on proofs", total, len(words), guide, proof)
	if proof > proofWords {
		t.Errorf("the pages on proofs have %d words, want at most %d", proof, proofWords)
	}
	if guide > guideWords {
		t.Errorf("the documents without those on neighbors have %d words, want at most %d: link to what another page says", guide, guideWords)
	}
	if total > documentWords {
		t.Errorf("the documents have %d words, want at most %d: link to what another page says", total, documentWords)
	}
}

func TestThreatModelStaysShort(t *testing.T) {
	if words := docpage.Words(readPage(t, "THREAT_MODEL.md")); words > threatWords {
		t.Errorf("THREAT_MODEL.md has %d words, want at most %d", words, threatWords)
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
