//go:build unix

package cli

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/program/console"
)

// Other signals are passed on to the command only.
func TestCommandGetsSignals(t *testing.T) {
	t.Parallel()
	script := `for s in HUP QUIT USR1 USR2; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.1; done`
	node := launch(t, newPlace(t).guarded(script)...)
	node.want("ready")
	for _, signal := range []struct {
		number syscall.Signal
		name   string
	}{{syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}} {
		node.signal(signal.number)
		node.want(signal.name)
	}
}

// A command that is to run once may have done its work when its guardian is killed, so it
// does not run again.
func TestCommandWithKilledGuardianRunsOnce(t *testing.T) {
	t.Parallel()
	node := launch(t, newPlace(t).guarded("echo $PPID; exec sleep 600", "--once")...)
	line, _ := node.line()
	guardian, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(guardian, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if again, more := node.line(); more {
		t.Fatalf("the command runs a second time, under the guardian %s", again)
	}
	if code := node.exit(); code != console.ExitNotAcquired {
		t.Errorf("exit code %d", code)
	}
}
