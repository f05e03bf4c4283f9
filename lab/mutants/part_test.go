package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestPartsHaveEachMutantOnce: the parts of the list share the mutants, have
// about the same number of them, and follow the order of the list.
func TestPartsHaveEachMutantOnce(t *testing.T) {
	const n = 11
	times := map[string]int{}
	for k := 1; k <= n; k++ {
		var out strings.Builder
		if code, err := command(t.Context(), []string{"-list", "-part", fmt.Sprintf("%d/%d", k, n)}, &out); code != 0 || err != nil {
			t.Fatalf("part %d: %d, %v", k, code, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if got, least := len(lines)/2, len(mutants)/n; got != least && got != least+1 {
			t.Errorf("part %d of %d has %d of %d mutants; want %d or %d", k, n, got, len(mutants), least, least+1)
		}
		for i := 0; i < len(lines); i += 2 {
			times[lines[i]]++
			if want := mutants[k-1+i/2*n].name; lines[i] != want {
				t.Errorf("part %d of %d has %q at place %d; want %q", k, n, lines[i], i/2, want)
			}
		}
	}
	for _, m := range mutants {
		if times[m.name] != 1 {
			t.Errorf("%q is in %d parts; want 1", m.name, times[m.name])
		}
	}
	for _, part := range []string{"0/3", "4/3", "1/0", "-1/3", "1", "1/", "/3", "1/3/5", "one/3", "1/3x"} {
		var out strings.Builder
		if code, err := command(t.Context(), []string{"-list", "-part", part}, &out); code != 2 || err == nil || out.Len() > 0 {
			t.Errorf("-part %s: exit code %d, error %v and the list %q; want 2, an error and no list", part, code, err, out.String())
		}
	}
	var out strings.Builder
	if code, err := command(t.Context(), []string{"-list", "-part", "2/2", mutants[0].name}, &out); code != 2 || err == nil {
		t.Errorf("a part without a mutant: exit code %d, error %v; want 2 and an error", code, err)
	}
}

// TestFailureReportsTheCommandThatRepeatsIt: every verdict but one has the
// command. A shell reads the name unchanged, and the name chooses one mutant.
func TestFailureReportsTheCommandThatRepeatsIt(t *testing.T) {
	const start = "    repeat it: go run ./lab/mutants -v "
	for v, want := range map[verdict]bool{survived: true, another: true, hung: true, broken: true, stale: true, unsound: true, caught: false} {
		var out strings.Builder
		report(&out, outcome{mutant: mutants[0], verdict: v}, true)
		if got := strings.Contains(out.String(), start); got != want {
			t.Errorf("%s: a command is printed: %t; want %t:\n%s", v, got, want, out.String())
		}
	}
	var all strings.Builder // the names, as arguments of one command
	var names []string
	for _, m := range mutants {
		var out strings.Builder
		report(&out, outcome{mutant: m, verdict: survived}, false)
		_, name, _ := strings.Cut(out.String(), start)
		all.WriteString(" " + strings.TrimSpace(name))
		names = append(names, m.name)
		if chosen := choose(mutants, []string{m.name}); len(chosen) != 1 {
			t.Errorf("the name %q chooses %d mutants; want 1", m.name, len(chosen))
		}
	}
	read, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n'`+all.String()).Output()
	if got := strings.Split(strings.TrimSpace(string(read)), "\n"); err != nil || !slices.Equal(got, names) {
		t.Errorf("a shell reads %q, error %v; want the names of all mutants", got, err)
	}
}
