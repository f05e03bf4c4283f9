package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	evidence     = regexp.MustCompile(`<!-- (tested by|no test:) ([^>]+) -->`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+|Example\w*)\(`)
	mutation     = regexp.MustCompile(`(?m)^\t\{"([^"]+)", \[\]int\{`)
	limitReasons = []string{"a limit", "introduces the page"} // how a reason for "no test:" begins

	// How a reason for "no server:" begins.
	serverlessReasons = []string{"about the engine only", "about local clocks only", "refused before a connection", "the run is the test"}
)

// TestGuaranteesNameTheirTests holds the page of guarantees, and the limits on the
// page of leases, to their tests: each paragraph, list item and table row ends with
// a comment, which readers do not see. The comment names tests and subtests that
// exist, or says that the sentences before it are a limit. One of the tests uses a real
// server, or the comment ends with "; no server:" and a reason: the simulator and
// backends in memory do what their authors expect of a server.
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
			for _, fault := range faultsOf(known, testsOf(t).onServer, claim) {
				t.Errorf("the page on %s: %s: %.100s", page.name, fault, claim)
			}
		}
	}
}

// faultsOf returns what is wrong with the evidence of a claim: each of its comments
// names known tests, one of them on a server, or a limit, and no sentence follows the
// last comment.
func faultsOf(known map[string]bool, onServer func(test string) bool, claim string) []string {
	found := evidence.FindAllStringSubmatchIndex(claim, -1)
	if found == nil {
		return []string{"no test is named"}
	}
	var faults []string
	if rest := strings.Trim(claim[found[len(found)-1][1]:], " |\n"); rest != "" {
		faults = append(faults, "no test is named for its end: "+rest)
	}
	for _, at := range found {
		kind, text := claim[at[2]:at[3]], claim[at[4]:at[5]]
		if kind == "no test:" {
			if !slices.ContainsFunc(limitReasons, func(reason string) bool { return strings.HasPrefix(text, reason) }) {
				faults = append(faults, "it is no limit, and has no test: "+text)
			}
			continue
		}
		text, reason, serverless := strings.Cut(text, "; no server: ")
		names := strings.Split(text, ", ")
		first := slices.IndexFunc(names, onServer)
		for _, name := range names {
			if !known[name] {
				faults = append(faults, "there is no test "+name)
			}
		}
		switch {
		case serverless && !slices.ContainsFunc(serverlessReasons, func(r string) bool { return strings.HasPrefix(reason, r) }):
			faults = append(faults, "it needs a test on a server: "+reason)
		case serverless && first >= 0:
			faults = append(faults, names[first]+" uses a server")
		case !serverless && first < 0:
			faults = append(faults, "no test uses a server: "+text)
		}
	}
	return faults
}

// TestClaimsWithoutEvidenceAreFound proves that the check of the pages can fail.
func TestClaimsWithoutEvidenceAreFound(t *testing.T) {
	known := testNames(t)
	onServer := func(test string) bool { return test == "TestDiagnoseReportsOnDatabase" }
	for claim, want := range map[string]string{
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase -->":                                                        "",
		"| 1 | It holds. <!-- tested by TestDiagnoseReportsOnDatabase --> |":                                                "",
		"It holds. <!-- tested by TestScriptsMatchTranscripts/crash, TestDiagnoseReportsOnDatabase -->":                     "",
		"It holds. <!-- tested by TestSchedules; no server: about the engine only -->":                                      "",
		"It holds. <!-- tested by TestMutationsAreDetected/a_reunion_that_misses_nodes; no server: the run is the test -->": "",
		"It holds. <!-- no test: a limit -->":                                                                               "",
		"It holds.":                                                                                                         "no test is named",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase, TestOfNothing -->":                                         "there is no test TestOfNothing",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase, TestScriptsMatchTranscripts/nothing -->":                   "there is no test TestScriptsMatchTranscripts/nothing",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase, TestMutationsAreDetected/nothing -->":                      "there is no test TestMutationsAreDetected/nothing",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase/nothing; no server: about the engine only -->":              "there is no test TestDiagnoseReportsOnDatabase/nothing",
		"It holds. <!-- no test: too hard -->":                                                                              "it is no limit, and has no test: too hard",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase --> So does this.":                                          "no test is named for its end: So does this.",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase --> So does this. <!-- tested by TestSchedules -->":         "no test uses a server: TestSchedules",
		"It holds. <!-- tested by TestSchedules, TestScriptsMatchTranscripts/crash, TestStepDownWaitsForGuards -->":         "no test uses a server: TestSchedules, TestScriptsMatchTranscripts/crash, TestStepDownWaitsForGuards",
		"It holds. <!-- tested by TestSchedules; no server: too slow -->":                                                   "it needs a test on a server: too slow",
		"It holds. <!-- tested by TestDiagnoseReportsOnDatabase; no server: about the engine only -->":                      "TestDiagnoseReportsOnDatabase uses a server",
	} {
		if got := strings.Join(faultsOf(known, onServer, claim), "; "); got != want {
			t.Errorf("%s: got %q, want %q", claim, got, want)
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

// testNames lists the tests and examples of all modules, and the subtests of the two
// tests of the simulator that the pages name by their subtests.
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
	scripts, err := filepath.Glob(filepath.Join(root, "lab", "sim", "testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		names["TestScriptsMatchTranscripts/"+strings.TrimSuffix(filepath.Base(script), ".txt")] = true
	}
	for _, found := range mutation.FindAllStringSubmatch(readPage(t, "lab/sim/mutation_test.go"), -1) {
		names["TestMutationsAreDetected/"+strings.ReplaceAll(found[1], " ", "_")] = true
	}
	return names
}
