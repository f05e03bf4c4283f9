package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// finishing is a command that needs 3 s after the request to end, which is longer than
// the default of --grace and than any grace with the default lease.
const finishing = `trap 'sleep 3; echo finished; exit 0' TERM; echo ready; while :; do sleep 0.1; done`

// When a node is asked to give up its role, its command has --stop-timeout to end. No
// other node leads before.
func TestCommandFinishesBeforeGracefulEnd(t *testing.T) {
	pgtest.Long(t)
	for name, end := range map[string]func(*testing.T, place, *process){
		"SIGTERM": func(_ *testing.T, _ place, node *process) { node.signal(syscall.SIGTERM) },
		"step-down": func(t *testing.T, p place, _ *process) {
			t.Helper()
			invoke(t, p.with("step-down", "--role", "billing")...).want(t, console.ExitDone)
		},
		"hand-over": func(t *testing.T, p place, _ *process) {
			t.Helper()
			invoke(t, p.with("step-down", "--role", "billing", "--to", "second")...).want(t, console.ExitDone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t)
			node := launch(t, place.guarded(finishing, "--name", "first")...)
			node.want("ready")
			second := place.standby(t, "--name", "second")
			asked := time.Now()
			end(t, place, node)
			line, _ := node.line()
			if took := time.Since(asked); line != "finished" || took < 3*time.Second {
				t.Errorf("a command that needs 3 s for a graceful end wrote %q after %v, want finished after 3s", line, took)
			}
			second.want("steady")
			if log := node.log(); strings.Contains(log, "lost") {
				t.Errorf("the role was lost during the graceful end:\n%s", log)
			}
		})
	}
}

// A command that does not end is killed when --stop-timeout has passed.
func TestStubbornCommandIsKilledAfterStopTimeout(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	node := launch(t, newPlace(t).guarded(`trap '' TERM; echo ready; while :; do sleep 0.1; done`, "--stop-timeout", "2s")...)
	node.want("ready")
	asked := time.Now()
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, want %d", code, console.ExitDone)
	}
	if took := time.Since(asked); took < 2*time.Second || took > 6*time.Second {
		t.Errorf("a command that ignores SIGTERM was killed after %v, want 2s", took)
	}
}
