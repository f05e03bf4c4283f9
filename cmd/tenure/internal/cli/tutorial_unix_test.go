//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// onlyHere limits a search for processes to the groups of processes that a stage has started.
const onlyHere = `#!/bin/sh
exec /usr/bin/pgrep -g "$(paste -s -d , "$HOME/groups")" "$@"
`

// TestTutorialOfCommandsRuns follows the tutorial of commands with its blocks, in two terminals
// and a third one.
func TestTutorialOfCommandsRuns(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	steps := map[string]string{} // by the beginning of the block
	for _, block := range shellBlocks(t) {
		if block.page != "docs/tutorial/first-command.md" {
			continue
		}
		for _, begin := range []string{"#!/bin/sh", "tenure run --name one ", "tenure run --name two ", "tenure status", "kill -9 ", "tenure step-down ", "kill -STOP ", "kill -CONT ", "tenure history "} {
			if strings.HasPrefix(block.Text, begin) {
				steps[begin] = block.Text
			}
		}
	}
	if len(steps) != 9 {
		t.Fatalf("%d of 9 steps were found: %q", len(steps), steps)
	}
	s := newStage(t, "", true)
	for name, content := range map[string]string{"report.sh": steps["#!/bin/sh"], "bin/pgrep": onlyHere, "groups": ""} {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	terminal := func(name string) *shell {
		t.Helper()
		sh := s.start("exec "+steps["tenure run --name "+name+" "], "")
		s.noteGroup(sh)
		return sh
	}
	third := func(begin string) {
		t.Helper()
		if err := s.try(plan{}, steps[begin]); err != nil {
			t.Fatal(err)
		}
	}
	await := func(sh *shell, pattern string) {
		t.Helper()
		if err := sh.await(pattern); err != nil {
			t.Fatal(sh.explain(err))
		}
	}
	alive := func(text string) {
		t.Helper()
		eventually(t, text, func() bool { return strings.Contains(invoke(t, s.place.with("status")...).stdout, text) })
	}

	one := terminal("one")
	await(one, "one writes report 2 in term ")
	two := terminal("two")
	alive("2 nodes are alive")
	third("tenure status")
	third("kill -9 ")
	await(two, "two writes report 1 in term ")
	if err := one.ends(-1); err != nil {
		t.Error(one.explain(err))
	}
	one = terminal("one")
	alive("2 nodes are alive")
	third("tenure step-down ")
	await(two, "two ends cleanly")
	await(one, "one writes report 1 in term ")
	third("kill -STOP ")
	await(two, `(?s)two ends cleanly.*two writes report 1 in term `)
	third("kill -CONT ")
	alive("2 nodes are alive")
	third("tenure history ")
	history := invoke(t, s.place.with("history", "--role", "reports")...).want(t, console.ExitDone).stdout
	for _, reason := range []string{"crashed", "stepped_down", "lease_expired"} {
		if !strings.Contains(history, reason) {
			t.Errorf("no term has ended because of %s:\n%s", reason, history)
		}
	}
	for _, sh := range []*shell{one, two} {
		if err := sh.terminate(0); err != nil {
			t.Error(sh.explain(err))
		}
	}
}
