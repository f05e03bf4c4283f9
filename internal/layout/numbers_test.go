package layout

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/promises"
)

// A number needs no test for one of these reasons.
const (
	ofExample = "an example's own value" // the reader chooses it
	ofReader  = "a choice of the reader" // the page advises; the code does not depend on it
	ofOthers  = "a limit of others"      // of a server, a service or a protocol
	noLimit   = "no limit"               // a count of what the page lists, a code, or part of a name
	zero      = "zero"                   // ten times nothing is nothing
	inFile    = "in the file "           // followed by a file that has the text, or the number in milliseconds
	measured  = "measured by "           // followed by a target of make, or a test
)

// excuse is a text on a page with numbers that need no test.
type excuse struct{ page, text, reason string }

// TestNumbersOfPagesAreTested: each number on the pages of promises is in the list
// of constants, whose tests have the literal, or has a reason.
func TestNumbersOfPagesAreTested(t *testing.T) {
	accounted := map[string][]string{} // the texts of a page
	for _, c := range promises.Constants {
		for _, in := range c.In {
			accounted[in.Page] = append(accounted[in.Page], in.Text)
		}
	}
	known, makefile := testNames(t), readPage(t, "Makefile")
	file := func(name string) string { return readPage(t, name) }
	for _, e := range excused {
		accounted[e.page] = append(accounted[e.page], e.text)
		if fault := e.fault(known, makefile, file); fault != "" {
			t.Errorf("%s: %q: %s", e.page, e.text, fault)
		}
	}
	pages := pagesWithNumbers(t)
	for page := range accounted {
		if !slices.Contains(pages, page) {
			t.Errorf("%s is not a page with promises", page)
		}
	}
	for _, page := range pages {
		for _, fault := range numberFaults(readPage(t, page), accounted[page]) {
			t.Errorf("%s:%s", page, fault)
		}
	}
}

// fault returns what is wrong with the reason, or nothing.
func (e excuse) fault(known map[string]bool, makefile string, file func(string) string) string {
	if slices.Contains([]string{ofExample, ofReader, ofOthers, noLimit, zero}, e.reason) {
		return ""
	}
	if name, ok := strings.CutPrefix(e.reason, inFile); ok {
		text := strings.Trim(e.text, "`")
		seconds := regexp.MustCompile(`(\d+) s\b`).FindStringSubmatch(text)
		if content := file(name); !strings.Contains(content, text) && (len(seconds) < 2 || !strings.Contains(content, " "+seconds[1]+"_000;")) {
			return "the file " + name + " does not have the number"
		}
		return ""
	}
	name, ok := strings.CutPrefix(e.reason, measured)
	target, isTarget := strings.CutPrefix(name, "make ")
	switch {
	case !ok:
		return "none of the reasons is: " + e.reason
	case isTarget && !strings.Contains(makefile, "\n"+target+":"):
		return "there is no target " + target
	case !isTarget && !known[name]:
		return "there is no test " + name
	}
	return ""
}

// pagesWithNumbers are the pages whose numbers need tests.
func pagesWithNumbers(t *testing.T) []string {
	t.Helper()
	pages := []string{promises.Guarantees, promises.Database}
	found, err := filepath.Glob(filepath.Join(root, "docs", "howto", "*.md"))
	if err != nil || len(found) < 20 {
		t.Fatalf("only %d how-to pages: %v", len(found), err)
	}
	for _, page := range found {
		pages = append(pages, "docs/howto/"+filepath.Base(page))
	}
	return pages
}

// numberFaults returns the numbers of a page that are in none of the texts, and the
// texts that do not occur exactly once.
func numberFaults(page string, texts []string) []string {
	var found []string
	prose := []byte(withoutCode(page))
	for _, text := range texts {
		switch n := strings.Count(page, text); {
		case n != 1:
			found = append(found, fmt.Sprintf(" the page has the text %d times, not once: %q", n, text))
		default:
			at := strings.Index(page, text)
			mark(prose[at : at+len(text)])
		}
	}
	lines := strings.Split(page, "\n")
	for i, line := range strings.Split(string(prose), "\n") {
		for _, number := range numbersIn(line) {
			found = append(found, fmt.Sprintf("%d: the number %q has no test: %s", i+1, number, lines[i]))
		}
	}
	return found
}

// Parts of a page that hold no promise keep their length and become spaces.
var (
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?\n *```$")
	indented    = regexp.MustCompile(`(?m)^ {4,}[^ |\n].*$`)
	linkTarget  = regexp.MustCompile(`\]\([^)\n]*\)`)
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
	timeInCode  = regexp.MustCompile(`\b\d+(ms|s|m|h|d)\b`)
)

func withoutCode(page string) string {
	text := []byte(page)
	for _, part := range []*regexp.Regexp{comment, fencedBlock, indented, linkTarget} {
		for _, at := range part.FindAllIndex(text, -1) {
			mark(text[at[0]:at[1]])
		}
	}
	for _, at := range inlineCode.FindAllIndex(text, -1) {
		code := text[at[0]:at[1]]
		times := timeInCode.FindAllIndex(code, -1)
		for i, b := range code {
			if !slices.ContainsFunc(times, func(in []int) bool { return in[0] <= i && i < in[1] }) && b != '\n' {
				code[i] = '~'
			}
		}
	}
	return string(text)
}

// mark replaces a text by marks that are neither spaces nor words, so that nothing
// beside it becomes one phrase. Ends of lines stay.
func mark(text []byte) {
	for i, b := range text {
		if b != '\n' {
			text[i] = '~'
		}
	}
}

var (
	// noLimits are numbers that are names: they promise nothing.
	noLimits = []*regexp.Regexp{
		regexp.MustCompile(`^ *\d+\. |^\| \d \|`),                      // an item of a list
		regexp.MustCompile(`^ *\|( [A-Z]+)? *(\d{3}( to |, )?)+[ |;]`), // a row about a status
		regexp.MustCompile(`\b([Pp]orts?|steps?|[Ee]xit codes?|codes?|status|statuses|SQLSTATE( classes)?|class|user|mode|RFC|SHA|API|UTF|May|psycopg|TLS|HTTP|OAuth|epoch|invariants?)[ -]v?[0-9][0-9A-Z.]*((,| to| or| and|, or|, and)? [0-9][0-9A-Z]*)*\b`),
		regexp.MustCompile(`\b(PostgreSQL|MySQL|MariaDB|Kubernetes|Patroni|HAProxy|gocron|Node\.js|version|before|Pgpool-II|and|Go) v?\d+(\.\d+)*( or later|:| and later|,? names)`),
		regexp.MustCompile(`\b(20[0-9]|299|4\d\d|50\d)([,;:)|]|$| [|(]| (with|without|while|before|from|when|or|and|to|has|have)\b|\*)`), // of HTTP
		regexp.MustCompile(`\b\d{5}\b`), // SQLSTATE
		regexp.MustCompile(`\bv\d+\b|\b[a-zA-Z]+\d+[a-z]*\b|\b\d+P\d+\b|\b\d+(st|nd|rd|th)\b|\b\d+xx\b`),
		regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b|\b\d?\d:\d\d\b|:\d\d\b`),
	}
	number = regexp.MustCompile(`\d[\d,.]*\d|\d`)
	// A second is a time only where no noun follows.
	timeInWords = regexp.MustCompile(`(?i)\b(a|an|one|two|three|four|five|six|seven|eight|nine|ten|half an?|quarter of a) (milliseconds?|minutes?|hours?|days?|weeks?|months?|years?|seconds|second( (later|after|before|to|and|or|for|per|in)\b|[^\w ~]|$))`)
	measures    = regexp.MustCompile(`(?i)\b(two|three|four|five|six|seven|eight|nine|ten) (leases|(check )?intervals|rounds|connections)\b`)
	part        = regexp.MustCompile(`(?i)\b(half (of|a|an|the)|quarters?|(a|nine|the|one) (third|eighth|tenths?|twentieth|hundredth)|nine tenths|three times|times in a row|failures in a row|eighth)\b`)
)

// numbersIn returns the numbers of a line of prose that may be a limit.
func numbersIn(line string) []string {
	text := []byte(line)
	for _, name := range noLimits {
		for _, at := range name.FindAllIndex(text, -1) {
			mark(text[at[0]:at[1]])
		}
	}
	text = bytes.TrimRight(text, "\n")
	var found []string
	for _, kind := range []*regexp.Regexp{number, timeInWords, measures, part} {
		for _, match := range kind.FindAll(text, -1) {
			found = append(found, strings.TrimSpace(string(match)))
		}
	}
	return found
}

// TestNumbersWithoutTestAreFound proves that the check of the pages can fail.
func TestNumbersWithoutTestAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page  string
		texts []string
		want  string
	}{
		{page: "It waits for 30 s.", want: `1: the number "30" has no test: It waits for 30 s.`},
		{page: "It waits for 30 s.", texts: []string{"for 30 s"}},
		{page: "It waits for 30 s, then 5 s.", texts: []string{"for 30 s"}, want: `1: the number "5" has no test: It waits for 30 s, then 5 s.`},
		{page: "It waits for 30 s.", texts: []string{"for 30 s", "for 31 s"}, want: ` the page has the text 0 times, not once: "for 31 s"`},
		{page: "From 5 s to 5 s", texts: []string{"5 s"}, want: ` the page has the text 2 times, not once: "5 s"
1: the number "5" has no test: From 5 s to 5 s
1: the number "5" has no test: From 5 s to 5 s`},
		{page: "Kept for a week, or half the lease.", want: `1: the number "a week" has no test: Kept for a week, or half the lease.
1: the number "half the" has no test: Kept for a week, or half the lease.`},
		{page: "Again within a second.", want: `1: the number "a second." has no test: Again within a second.`},
		{page: "It is a second leader, and asks for a second time."},
		{page: "At most 1,000 roles", want: `1: the number "1,000" has no test: At most 1,000 roles`},
		{page: "Flag `--grace` (`1s`)", want: "1: the number \"1\" has no test: Flag `--grace` (`1s`)"},
		{page: "A tenth of the lease", want: `1: the number "A tenth" has no test: A tenth of the lease`},
		{page: "500 roles, but status 503, or 404: see", want: `1: the number "500" has no test: 500 roles, but status 503, or 404: see`},
		{page: "1. PostgreSQL 14 or later, port 5432, exit code 2, [a link](page.md#part-3), `f(3)` <!-- 30 s -->"},
		{page: "```\nsleep 30\n```\n\n    sleep 30\n"},
	} {
		if got := strings.Join(numberFaults(c.page, c.texts), "\n"); got != c.want {
			t.Errorf("%q without %q:\ngot  %s\nwant %s", c.page, c.texts, got, c.want)
		}
	}
}

// TestExcusesNeedAReason: an excuse names a reason of a known kind, with a file, a
// target or a test that exists.
func TestExcusesNeedAReason(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"TestKnown": true}
	file := func(string) string { return "Timeout=45s; const limit = 12_000; // ms" }
	for want, excuses := range map[string][]excuse{
		"": {
			{text: "30 s", reason: ofExample},
			{text: "`Timeout=45s`", reason: inFile + "unit"},
			{text: "after 12 s", reason: inFile + "live.js"},
			{text: "50 ms", reason: measured + "TestKnown"},
			{text: "50 ms", reason: measured + "make bench"},
		},
		"none of the reasons is: too hard":    {{text: "30 s", reason: "too hard"}},
		"there is no test TestNone":           {{text: "30 s", reason: measured + "TestNone"}},
		"there is no target none":             {{text: "30 s", reason: measured + "make none"}},
		"the file u does not have the number": {{text: "after 13 s", reason: inFile + "u"}, {text: "`Timeout=46s`", reason: inFile + "u"}},
	} {
		for _, e := range excuses {
			if got := e.fault(known, "all: test\n\nbench: build\n", file); got != want {
				t.Errorf("%+v: got %q, want %q", e, got, want)
			}
		}
	}
}
