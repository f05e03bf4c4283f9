package layout

import (
	"regexp"
	"testing"
)

// namedTest is how a page names a test in its text.
var namedTest = regexp.MustCompile(`\bTest[A-Z]\w+`)

// TestPagesNameTestsThatExist: pages that answer an attack or a fault with a test name
// one that there is.
func TestPagesNameTestsThatExist(t *testing.T) {
	known := testNames(t)
	for page, least := range map[string]int{"THREAT_MODEL.md": 50, "docs/explanation/track-record.md": 40} {
		found := namedTest.FindAllString(readPage(t, page), -1)
		if len(found) < least {
			t.Errorf("%s names %d tests, want at least %d: the test looks in the wrong place", page, len(found), least)
		}
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
	}
}
