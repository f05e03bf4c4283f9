package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/promises"
)

// TestClaimsNameTheTestsOfTheirNumbers: a sentence that names its tests and states a
// promised number names a test that fails if the number is another.
func TestClaimsNameTheTestsOfTheirNumbers(t *testing.T) {
	compared := 0
	for page, text := range pagesWithClaims(t) {
		for _, claim := range claims(text) {
			begin := 0
			for _, at := range evidence.FindAllStringSubmatchIndex(claim, -1) {
				sentence, comment := oneLine(claim[begin:at[0]]), claim[at[4]:at[5]]
				begin = at[1]
				if claim[at[2]:at[3]] != "tested by" {
					continue
				}
				for _, c := range promises.Constants {
					if slices.ContainsFunc(c.In, func(p promises.Place) bool { return p.Page == page && strings.Contains(sentence, oneLine(p.Text)) }) {
						compared++
						if fault := unnamed(c, comment); fault != "" {
							t.Errorf("%s: %.80s…: %s", page, sentence, fault)
						}
					}
				}
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d numbers of claims were found: the test looks in the wrong place", compared)
	}
}

var anyTest = regexp.MustCompile(`Test\w+`)

// unnamed returns what is wrong if the comment of a claim names no test of a number.
func unnamed(c promises.Constant, comment string) string {
	var tests []string
	for _, test := range c.Tests {
		tests = append(tests, anyTest.FindAllString(test.Run, -1)...)
	}
	named := anyTest.FindAllString(comment, -1)
	if slices.ContainsFunc(tests, func(test string) bool { return slices.Contains(named, test) }) {
		return ""
	}
	return "no test of the number in " + c.Name() + " is named: " + strings.Join(tests, ", ")
}

// TestUnnamedTestsOfNumbersAreFound proves that the check of numbers can fail.
func TestUnnamedTestsOfNumbersAreFound(t *testing.T) {
	c := promises.Constant{
		In:    []promises.Place{{Page: "a/page.md", Text: "for a day"}},
		Tests: []promises.Test{{Run: "^TestOne$|^TestTwo$"}},
	}
	for comment, want := range map[string]string{
		"TestOther, TestTwo":      "",
		"TestOther, TestTwoTimes": "no test of the number in constant: page: for a day is named: TestOne, TestTwo",
	} {
		if got := unnamed(c, comment); got != want {
			t.Errorf("%s: got %q, want %q", comment, got, want)
		}
	}
}

// pagesWithClaims returns the text of each document that names tests, by its path.
func pagesWithClaims(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if text := readPage(t, filepath.ToSlash(name)); evidence.MatchString(text) {
			pages[filepath.ToSlash(name)] = text
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
