package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// No entry of the list is stale: each names a line that is there exactly once.
func TestNoMutantIsStale(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		if m.promise == "" || len(m.tests) == 0 {
			t.Errorf("%s: no promise or no tests", m.name)
		}
		if _, err := m.mutate(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, ts := range m.tests {
			if err := ts.exist(root); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	if len(mutants) < 60 {
		t.Errorf("there are %d mutants, fewer than 60", len(mutants))
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// exist returns an error if a part of the pattern matches no test function.
func (t tests) exist(root string) error {
	files, err := filepath.Glob(filepath.Join(root, t.module, t.folder, "*_test.go"))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	whole, _, _ := strings.Cut(t.run, "/")
	for part := range strings.SplitSeq(whole, "|") {
		pattern, err := regexp.Compile(part)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(names, pattern.MatchString) {
			return fmt.Errorf("no test of %s matches %q", filepath.Join(t.module, t.folder), part)
		}
	}
	return nil
}

// A few mutants whose tests are quick are caught with every commit.
func TestCheapMutantsAreCaught(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRunner(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, name := range []string{
		"engine: the end of trust cancels no context",
		"engine: a lease may be shorter than what a heartbeat needs",
		"lease: the nil id holds a vacant lease",
	} {
		selected := choose(mutants, []string{name})
		if len(selected) != 1 {
			t.Fatalf("%d mutants are called %q", len(selected), name)
		}
		if o := r.try(t.Context(), selected[0]); o.verdict != caught {
			t.Errorf("%s: %s\n%s", name, o.verdict, o.detail)
		}
	}
}

// module writes a module with one function and tests of it, and returns its
// folder.
func module(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sum\n\ngo 1.26\n",
		"sum.go": "package sum\n\nfunc sum(a, b int) int {\n	return a + b\n}\n",
		"sum_test.go": `package sum

import "testing"

func TestSum(t *testing.T) {
	if got := sum(1, 2); got != 3 {
		t.Errorf("the sum is wrong: %d", got)
	}
}

func TestZero(t *testing.T) {
	if sum(0, 0) != 0 {
		t.Error("zero")
	}
}

func TestNil(t *testing.T) {
	var none *testing.T
	if sum(1, 2) != 3 {
		none.Error("the sum is wrong")
	}
}

func TestPanic(t *testing.T) {
	if sum(1, 2) != 3 {
		panic("the sum is wrong")
	}
}

func TestHang(t *testing.T) {
	if sum(1, 2) != 3 {
		select {}
	}
}

func TestRed(t *testing.T) { t.Error("always") }
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestVerdictsAreDistinct: each verdict on a mutant differs from the others,
// and the source stays as it was.
func TestVerdictsAreDistinct(t *testing.T) {
	pgtest.Long(t)
	t.Setenv("GOWORK", "off")
	folder := module(t)
	r, err := newRunner(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.limit = 5 * time.Second
	from, less := "	return a + b\n", "	return a - b\n"
	for _, c := range []struct {
		name, from, to, run, says string
		want                      verdict
	}{
		{"a test fails and says why", from, less, "^TestSum$", "the sum is wrong", caught},
		{"a test fails for another reason", from, less, "^TestSum$", "invariant", another},
		{"only the framework says it", from, less, "^TestSum$", "TestSum", another},
		{"a pointer is nil", from, less, "^TestNil$", "the sum is wrong", another},
		{"a panic of the test gets through", from, less, "^TestPanic$", "the sum is wrong", caught},
		{"no test fails", from, less, "^TestZero$", "", survived},
		{"a test hangs", from, less, "^TestHang$", "", hung},
		{"a type error", from, "	return \"\"\n", "^TestSum$", "", broken},
		{"a line that is not there", "	return b + a\n", less, "^TestSum$", "", stale},
		{"a line that is there twice", "a", "b", "^TestSum$", "", stale},
		{"two lines", "int {\n	return a + b", "int{\n	return a - b", "^TestSum$", "", stale},
		{"a test that fails anyhow", from, less, "^TestRed$", "", unsound},
		{"a test that does not exist", from, less, "^TestBlue$", "", unsound},
	} {
		m := mutant{name: c.name, file: "sum.go", from: c.from, to: c.to, tests: []tests{in(".", c.run)}, says: c.says}
		if o := r.try(t.Context(), m); o.verdict != c.want {
			t.Errorf("%s: %s instead of %s\n%s", c.name, o.verdict, c.want, o.detail)
		}
	}
	source, err := os.ReadFile(filepath.Join(folder, "sum.go"))
	if err != nil || !strings.Contains(string(source), from) {
		t.Errorf("the source was changed: %s, %v", source, err)
	}
}

// The exit code is 0 only if all is caught, and the table has every mutant.
func TestCommandLineReportsEachMutant(t *testing.T) {
	var out strings.Builder
	if code, err := command(t.Context(), []string{"-list", "guardian:"}, &out); code != 0 || err != nil {
		t.Errorf("-list: %d, %v", code, err)
	}
	if n := strings.Count(out.String(), "\nguardian: ") + 1; n != len(guardianMutants) {
		t.Errorf("-list prints %d of %d mutants", n, len(guardianMutants))
	}
	if code, _ := command(t.Context(), []string{"no such name"}, &out); code != 2 {
		t.Errorf("an unknown name: %d", code)
	}
}
