//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// inSlot prints its slot, its role and whether it has a term, and then runs until it is asked
// to end.
const inSlot = `echo slot $TENURE_SLOT $TENURE_ROLE ${#TENURE_TERM}; exec sleep 1000`

// Two of three nodes run the command. When one is killed, the third takes over its slot.
func TestCommandRunsInSlots(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := launch(t, place.guarded(inSlot, "--slots", "2")...)
	first, _ := one.line()
	two := launch(t, place.guarded(inSlot, "--slots", "2")...)
	second, _ := two.line()
	if got := sorted(first, second); !slices.Equal(got, []string{"slot 1 billing/1 13", "slot 2 billing/2 13"}) {
		t.Fatalf("lines %q", got)
	}
	standby := launch(t, place.guarded(inSlot, "--slots", "2", "--log-level", "debug", "--name", "standby")...)
	standby.awaitLog("msg=acquire_failed node=standby role=billing/1")
	standby.awaitLog("msg=acquire_failed node=standby role=billing/2")
	one.signal(syscall.SIGKILL)
	standby.want(first)
	two.signal(syscall.SIGTERM)
	if code := two.exit(); code != console.ExitDone {
		t.Errorf("exit code %d; log:\n%s", code, two.log())
	}
}

func sorted(lines ...string) []string {
	slices.Sort(lines)
	return lines
}

// With several slots a node runs several commands, and each gets the signals. When one
// ends for good, the program ends the others and exits with its code.
func TestNodeRunsSeveralSlots(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := `cd ` + folder + `; trap 'echo usr; mkdir first 2>/dev/null && exit 7' USR1; trap 'echo ended; exit 9' TERM
		echo slot $TENURE_SLOT; while :; do sleep 0.1; done`
	node := launch(t, newPlace(t).guarded(script, "--slots", "3", "--slots-per-node", "2", "--restart", "never")...)
	one, _ := node.line()
	two, _ := node.line()
	if one == two || !strings.HasPrefix(one, "slot ") || !strings.HasPrefix(two, "slot ") {
		t.Fatalf("lines %q and %q; log:\n%s", one, two, node.log())
	}
	node.signal(syscall.SIGUSR1)
	var rest []string
	for line, more := node.line(); more; line, more = node.line() {
		rest = append(rest, line)
	}
	if got := sorted(rest...); !slices.Equal(got, []string{"ended", "usr", "usr"}) {
		t.Errorf("lines %q; log:\n%s", got, node.log())
	}
	if code := node.exit(); code != 7 {
		t.Errorf("exit code %d; log:\n%s", code, node.log())
	}
}

// Of five programs that are started at the same time, as many as there are slots run
// their command, and the others exit.
func TestSlotsLimitScripts(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	end := filepath.Join(t.TempDir(), "end")
	script := fmt.Sprintf(`echo ran; while ! [ -e %s ]; do sleep 0.01; done`, end)
	var nodes [5]*process
	for i := range nodes {
		nodes[i] = launch(t, place.guarded(script, "--slots", "2", "--once", "--no-leader-exit", "75")...)
	}
	var running []*process
	for _, node := range nodes {
		if _, ran := node.line(); ran {
			running = append(running, node)
		} else if code := node.exit(); code != 75 {
			t.Errorf("exit code %d without a slot; log:\n%s", code, node.log())
		}
	}
	if len(running) != 2 {
		t.Errorf("%d commands ran in 2 slots", len(running))
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, node := range running {
		if code := node.exit(); code != 0 {
			t.Errorf("exit code %d; log:\n%s", code, node.log())
		}
	}
}

// The variable of a slot does not come from outside.
func TestSlotVariableIsNotInherited(t *testing.T) {
	t.Parallel()
	node := launchWith(t, []string{"TENURE_SLOT=9"}, newPlace(t).guarded(`echo "slot ${TENURE_SLOT-none}"`)...)
	if line, _ := node.line(); !strings.HasPrefix(line, "slot none") {
		t.Errorf("line %q", line)
	}
}
