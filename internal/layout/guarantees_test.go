package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	evidence     = regexp.MustCompile(`<!-- (tested by|no test:) ([^>]+) -->`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+|Example\w*)\(`)
)

// TestGuaranteesNameTheirTests holds the page of guarantees, and the limits on the
// page of leases, to their tests: each paragraph, list item and table row names,
// in a comment that readers do not see, tests that exist, or says why no test can
// back it.
func TestGuaranteesNameTheirTests(t *testing.T) {
	leases := readPage(t, "docs/explanation/leases.md")
	_, limits, found := strings.Cut(leases, "\n## What is different\n")
	limits, _, ends := strings.Cut(limits, "\n### Behavior\n")
	if !found || !ends {
		t.Fatal("the page on leases has no section with its limits")
	}
	known := testNames(t)
	for _, page := range []struct {
		name, text string
		least      int // of its claims
	}{
		{"guarantees", readPage(t, "docs/explanation/guarantees.md"), 60},
		{"leases", limits, 12},
	} {
		all := claims(page.text)
		if len(all) < page.least {
			t.Fatalf("only %d claims were found on the page on %s: the test looks in the wrong place", len(all), page.name)
		}
		for _, claim := range all {
			checkEvidence(t, known, claim)
		}
	}
}

// checkEvidence checks that a claim names tests that are known, or a reason.
func checkEvidence(t *testing.T, known map[string]bool, claim string) {
	t.Helper()
	found := evidence.FindStringSubmatch(claim)
	if found == nil {
		t.Errorf("no test is named for: %.100s", claim)
		return
	}
	if found[1] == "no test:" {
		return
	}
	for name := range strings.SplitSeq(found[2], ", ") {
		function, _, _ := strings.Cut(name, "/")
		if !known[function] {
			t.Errorf("there is no test %s, named for: %.100s", name, claim)
		}
	}
}

// claims splits a page into paragraphs, list items and table rows, without
// headings, code, and paragraphs that introduce what follows.
func claims(page string) []string {
	var all []string
	fenced := false
	for block := range strings.SplitSeq(page, "\n\n") {
		wasFenced := fenced
		if strings.Count(block, "```")%2 == 1 {
			fenced = !fenced
		}
		switch {
		case wasFenced, strings.HasPrefix(block, "```"), strings.HasPrefix(block, "    "), strings.HasPrefix(block, "#"):
		case strings.HasPrefix(block, "|"):
			for _, row := range strings.Split(block, "\n")[2:] {
				if row != "" && !strings.HasPrefix(row, "<!--") {
					all = append(all, row)
				}
			}
		case strings.HasPrefix(block, "- "):
			for item := range strings.SplitSeq("\n"+block, "\n- ") {
				if item != "" {
					all = append(all, strings.ReplaceAll(item, "\n", " "))
				}
			}
		case strings.HasSuffix(strings.TrimSpace(block), ":"), strings.TrimSpace(block) == "":
		default:
			all = append(all, strings.ReplaceAll(block, "\n", " "))
		}
	}
	return all
}

// testNames lists the tests and examples of all modules.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
