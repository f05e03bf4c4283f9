package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

const root = "../.."

// exceptions are functions of test files that no gate and no slice runs in full,
// with the reason.
var exceptions = map[string]string{}

// TestEveryTestRuns compares all tests, fuzz targets, benchmarks and examples of all
// modules with the steps of the gates and slices.
func TestEveryTestRuns(t *testing.T) {
	all, err := allTests(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2000 {
		t.Fatalf("only %d tests were found: the test looks in the wrong place", len(all))
	}
	unused := map[string]bool{}
	for name := range exceptions {
		unused[name] = true
	}
	for _, found := range all {
		delete(unused, found.String())
		if exceptions[found.String()] == "" && !isRun(found) {
			t.Errorf("nothing runs the %s: add its package to a slice, or name it in exceptions with the reason", found)
		}
	}
	for name := range unused {
		t.Errorf("exceptions name the %s, which does not exist", name)
	}
}

// isRun reports whether a gate or a slice runs all of a test.
func isRun(t test) bool {
	switch t.kind {
	case fuzzKind:
		return inSlice(func(s step) bool { return s.fuzzes(t) }) && runsInFull(t)
	case benchmarkKind:
		return inSlice(func(s step) bool { return s.benchmarks(t) })
	}
	return runsInFull(t)
}

func inSlice(does func(step) bool) bool {
	return slices.ContainsFunc(deep, func(p part) bool { return slices.ContainsFunc(p.steps, does) })
}

// TestStepSelectsWhatGoTestRuns holds the rules of patterns to those of go test.
func TestStepSelectsWhatGoTestRuns(t *testing.T) {
	library := test{module: ".", folder: "cron", name: "TestTick", kind: testKind}
	engine := test{module: ".", folder: ".", name: "TestTerm", kind: testKind}
	program := test{module: "cmd/tenure", folder: "internal/cli", name: "TestRun", kind: testKind}
	for _, c := range []struct {
		name string
		step step
		test test
		want bool
	}{
		{"all packages of the module", step{packages: []string{"./..."}}, library, true},
		{"the module's own package", step{packages: []string{"./..."}}, engine, true},
		{"only the module's own package", step{packages: []string{"."}}, library, false},
		{"another module is not below it", step{packages: []string{"./..."}}, program, false},
		{"a module of the workspace", step{packages: []string{"./cmd/tenure/..."}}, program, true},
		{"a folder above the other module", step{packages: []string{"./cmd/..."}}, program, false},
		{"a package that is left out", step{packages: []string{"./..."}, without: []string{"./cron/..."}}, library, false},
		{"a folder whose name begins alike", step{packages: []string{"./cr..."}}, library, false},
		{"a pattern that matches", step{packages: []string{"./cron"}, run: "^TestT"}, library, true},
		{"a pattern that does not", step{packages: []string{"./cron"}, run: "^TestX"}, library, false},
		{"a pattern of a subtest", step{packages: []string{"./cron"}, run: "^TestTick$/one"}, library, false},
		{"a test that is skipped", step{packages: []string{"./cron"}, skip: "Tick$"}, library, false},
		{"a command", step{packages: []string{"./cron"}, command: []string{"true"}}, library, false},
	} {
		if got := c.step.selects(c.test); got != c.want {
			t.Errorf("%s: selected: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTestsOfPackageAreFound reads a package with each kind of function.
func TestTestsOfPackageAreFound(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": "package a\n\nimport \"testing\"\n\n" +
			"func TestA(t *testing.T) {}\nfunc Testa(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\nfunc TestHelper(t *testing.T, n int) {}\n" +
			"func (x) TestOf(t *testing.T) {}\nfunc FuzzA(f *testing.F) {}\nfunc BenchmarkA(b *testing.B) {}\n" +
			"func ExampleA() {\n\t// Output: a\n}\nfunc ExampleB() {}\n",
		"a_windows_test.go": "package a\n\nimport \"testing\"\n\nfunc TestWindows(t *testing.T) {}\n",
		"b_test.go":         "//go:build ignore\n\npackage a\n\nimport \"testing\"\n\nfunc TestIgnored(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := testsOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, string(f.kind)+" "+f.name)
	}
	want := []string{"benchmark BenchmarkA", "example ExampleA", "example that only compiles ExampleB", "fuzz target FuzzA", "test TestA"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A test that skips fails the run, unless it is allowed to.
func TestSkippedTestFailsTheRun(t *testing.T) {
	events := `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no such program\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"2026/11/29 INFO migrated the tables: by another test\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1}
`
	for _, allowed := range []bool{false, true} {
		var seen []skipped
		r := report{out: &bytes.Buffer{}, allowed: func(s skipped) bool { seen = append(seen, s); return allowed }}
		if err := r.read(strings.NewReader(events)); err != nil {
			t.Fatal(err)
		}
		if want := []skipped{{"p", "TestA", "no such program"}}; !slices.Equal(seen, want) {
			t.Errorf("got the skipped tests %q, want %q", seen, want)
		}
		if failed := len(r.failed) > 0; failed == allowed {
			t.Errorf("allowed %v: failed: %q", allowed, r.failed)
		}
		if r.counts.passed != 1 || r.counts.skipped != 1 {
			t.Errorf("got %+v, want 1 passed and 1 skipped", r.counts)
		}
	}
}

// Of a benchmark go test reports the begin and the result, and no end.
func TestBenchmarksCount(t *testing.T) {
	events := `
{"Action":"run","Package":"p","Test":"BenchmarkA"}
{"Action":"output","Package":"p","Test":"BenchmarkA","Output":"BenchmarkA\n"}
{"Action":"output","Package":"p","Test":"BenchmarkA","Output":"BenchmarkA-2   \t       1\t       771.0 ns/op\n"}
{"Action":"pass","Package":"p","Elapsed":1}
`
	r := report{out: &bytes.Buffer{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if r.counts != (counts{passed: 1}) || len(r.failed) > 0 {
		t.Errorf("got %+v, failed %q; want 1 passed", r.counts, r.failed)
	}
}

// A binary that crashes ends none of its tests; their output must be shown.
func TestTestWithoutEndIsReported(t *testing.T) {
	events := `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"fatal error: all goroutines are asleep\n"}
{"Action":"output","Package":"p","Output":"FAIL p 0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	out := &bytes.Buffer{}
	r := report{out: out}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"p TestA did not end", "p"}; !slices.Equal(r.failed, want) {
		t.Errorf("got the failures %q, want %q", r.failed, want)
	}
	if !strings.Contains(out.String(), "fatal error: all goroutines are asleep") {
		t.Errorf("the output of the test is missing: %q", out)
	}
}

// Long tests may be left out of a short run only if a slice runs all of them.
func TestLongTestsAreSkippedInShortRunsOnly(t *testing.T) {
	kept := testsOfRepository
	t.Cleanup(func() { testsOfRepository = kept })
	testsOfRepository = []test{
		{module: ".", folder: "postgres", name: "TestLong", kind: testKind},
		{module: "elsewhere", folder: ".", name: "TestLong", kind: testKind},
	}
	for _, c := range []struct {
		name  string
		short bool
		found skipped
		want  bool
	}{
		{"a slice runs it", true, skipped{modulePath + "/postgres", "TestLong", long}, true},
		{"a subtest of it", true, skipped{modulePath + "/postgres", "TestLong/part", long}, true},
		{"no slice runs it", true, skipped{modulePath + "/elsewhere", "TestLong", long}, false},
		{"the run is not short", false, skipped{modulePath + "/postgres", "TestLong", long}, false},
		{"another reason", true, skipped{modulePath + "/postgres", "TestLong", "there is no server"}, false},
	} {
		if got := mayBeSkipped(step{short: c.short}, c.found); got != c.want {
			t.Errorf("%s: may be skipped: %v, want %v", c.name, got, c.want)
		}
	}
}

// Each allowance names a test that exists.
func TestAllowancesNameTests(t *testing.T) {
	all, err := allTests(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range allowances {
		name, _, _ := strings.Cut(a.test, "/")
		if !slices.ContainsFunc(all, func(t test) bool { return t.pkg() == a.pkg && t.name == name }) {
			t.Errorf("there is no test %s in %s", a.test, a.pkg)
		}
		if a.message == "" || a.because == "" {
			t.Errorf("%s in %s: the message or the reason is missing", a.test, a.pkg)
		}
	}
}

// Consecutive commits take different slices, and each slice has its turn.
func TestEverySliceHasItsTurn(t *testing.T) {
	seen := map[string]int{}
	for commits := range deep {
		seen[turn(1000+commits).name]++
	}
	for _, p := range deep {
		if seen[p.name] != 1 {
			t.Errorf("in %d commits %s had %d turns, want 1", len(deep), p.name, seen[p.name])
		}
	}
}

func TestUnknownSliceIsRefused(t *testing.T) {
	if _, err := choose([]string{"chaos", "nothing"}); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "patroni-sync") {
		t.Errorf("got %v, want a wrong usage with the names of all slices", err)
	}
}

// The table of CONTRIBUTING.md has a row for each gate and slice, as `make deep` writes it.
func TestTableNamesEverySlice(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := docpage.Update(copied, "deep", func(old string) string { return table(old, nil) }); err != nil {
		t.Fatal(err)
	}
	if updated, err := os.ReadFile(copied); err != nil || !bytes.Equal(updated, text) {
		t.Errorf("the table of CONTRIBUTING.md is stale (%v): run make deep-table", err)
	}
}

func TestTableKeepsTimesOfOtherParts(t *testing.T) {
	first := table("", map[string]time.Duration{"chaos": 5*time.Minute + 3*time.Second, "fuzz-library": time.Minute})
	second := table(first, map[string]time.Duration{"fuzz-library": 9 * time.Minute})
	for _, want := range []string{"| 5:03 |", "| 9:00 |"} {
		if !strings.Contains(second, want) {
			t.Errorf("the table lacks %q:\n%s", want, second)
		}
	}
}
