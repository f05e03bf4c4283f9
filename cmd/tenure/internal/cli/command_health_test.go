//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// steady is a command that reports that it runs, and continues until it is asked to end.
const steady = `echo steady; exec sleep 1000`

// standby launches a steady command whose node waits for another one's role.
func (p place) standby(t *testing.T, flags ...string) *process {
	t.Helper()
	node := launch(t, p.guarded(steady, append(flags, "--log-level", "debug")...)...)
	node.awaitLog("msg=acquire_failed")
	return node
}

// requireDead fails the test if a process whose id is in a file runs, or if no process
// has written its id there.
func requireDead(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(text))
	if len(ids) == 0 {
		t.Errorf("no process wrote its id to %s", filepath.Base(file))
	}
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("the process of %s, %d, still runs", filepath.Base(file), pid)
		}
	}
}

// A node whose command keeps failing gives up the role. A standby leads immediately, and
// the node leads again when the standby is gone.
func TestStandbyTakesOverFromFailingCommand(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	place := newPlace(t)
	failing := launch(t, place.guarded(`cd `+folder+`; echo run; until test -e begin; do sleep 0.01; done; test -e repaired && exec sleep 1000; exit 3`,
		"--max-restarts", "2")...)
	failing.want("run")
	healthy := place.standby(t)
	if err := os.WriteFile(folder+"/begin", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		failing.want("run")
	}
	healthy.want("steady")
	failing.awaitLog("the command ended 3 times in a row, most recently with exit code 3")
	failing.awaitLog("leaving the role to other candidates")
	if err := os.WriteFile(folder+"/repaired", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	healthy.signal(syscall.SIGKILL)
	failing.want("run")
	failing.signal(syscall.SIGTERM)
	if code := failing.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// A node whose command is unhealthy ends it and gives up the role.
func TestStandbyTakesOverFromUnhealthyCommand(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	folder := t.TempDir()
	place := newPlace(t)
	sick := launch(t, place.guarded(`echo $$ > `+folder+`/command; `+steady,
		"--health-command", "echo checked; test ! -e "+folder+"/sick", "--health-every", "3s")...)
	sick.want("steady")
	sick.awaitLog("checked") // the command's standard output is its own
	standby := place.standby(t, "--health-command", "true", "--health-every", "3s")
	if err := os.WriteFile(folder+"/sick", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	standby.want("steady")
	requireDead(t, folder+"/command")
	sick.awaitLog("its exit code was 1") // not always the last time: a busy machine may need longer than 1s
	sick.awaitLog("the command is unhealthy: the health command failed 3 times in a row; the last time, it")
	if lines := len(sick.lines); lines != 0 {
		t.Errorf("%d more lines of output", lines)
	}
}

// stuck is a health command that ignores requests to end, as its child does. Each run
// adds their ids to files.
func stuck(folder string) string {
	return `cd ` + folder + `; trap "" TERM; echo $$ >> check; sh -c 'trap "" TERM; echo $$ >> grandchild; echo a check is stuck; sleep 1000' & wait; sleep 1000`
}

// A health command that does not return has failed. It is gone, with its
// descendants, before another node leads. One of its runs must have a child within its
// time limit, which a busy machine must not miss.
func TestStuckHealthCommandFails(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	folder := t.TempDir()
	place := newPlace(t)
	node := launch(t, place.guarded(`echo $$ > `+folder+`/command; `+steady, "--health-command", stuck(folder), "--health-every", "2s")...)
	node.want("steady")
	place.standby(t).want("steady")
	for _, file := range []string{"command", "check", "grandchild"} {
		requireDead(t, filepath.Join(folder, file))
	}
	node.awaitLog("it took longer than 2s")
}

// A health command that does not return delays neither the end of the command nor
// the release of the role, and does not outlive this program.
func TestStuckHealthCommandEndsWithTerm(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"graceful": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			if name == "killed" {
				pgtest.Long(t)
			}
			t.Parallel()
			folder := t.TempDir()
			place := newPlace(t)
			node := launch(t, place.guarded(`trap 'echo asked; exit' TERM; echo steady; while :; do sleep 0.1; done`,
				"--health-command", stuck(folder), "--health-every", "4s")...) // no run reaches its time limit
			node.want("steady")
			standby := place.standby(t)
			node.awaitLog("a check is stuck")
			node.signal(signal)
			standby.want("steady")
			for _, file := range []string{"check", "grandchild"} {
				requireDead(t, filepath.Join(folder, file))
			}
			if signal == syscall.SIGTERM {
				node.want("asked")
				if code := node.exit(); code != console.ExitDone {
					t.Errorf("exit code %d", code)
				}
			}
		})
	}
}

// If the command may not run again, an unhealthy command ends the program.
func TestUnhealthyCommandEndsProgramWithoutRestarts(t *testing.T) {
	t.Parallel()
	result := invoke(t, newPlace(t).guarded(`exec sleep 1000`, "--restart", "never", "--health-command", "exit 4", "--health-every", "100ms")...)
	result.want(t, console.ExitNotAcquired)
	if !strings.Contains(result.stderr, "the command is unhealthy") {
		t.Errorf("standard error: %s", result.stderr)
	}
}
