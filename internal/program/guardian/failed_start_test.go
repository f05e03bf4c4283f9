//go:build linux

package guardian

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The guardian is a process that can fail to start after its fork: the system may refuse
// it threads or memory. Here its runtime refuses a setting of the environment. Then the
// command was not started, which is not the end of a command.
func TestGuardianThatDiesAtItsStartHasStartedNothing(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), "echo 1 > ran", func(c *Command) { c.Env = append(c.Env, "GOMEMLIMIT=much") })
	r.wait()
	if !errors.Is(r.err, ErrNotStarted) || !strings.Contains(r.err.Error(), "the guardian ended before it started the command: exit status 2") {
		t.Errorf("a guardian that died at its start: the command ended with %+v, %v; want an error that matches ErrNotStarted and names the guardian's exit status", r.end, r.err)
	}
	if _, err := os.Stat(filepath.Join(r.folder, "ran")); err == nil {
		t.Error("the command ran")
	}
}

// A guardian that another process kills is reported as such.
func TestKilledGuardianIsReportedAsLost(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `echo 1 > ready; while :; do sleep 0.1; done`)
	r.file("ready")
	r.signalGuardian(syscall.SIGKILL)
	r.want(End{Code: 128 + int(syscall.SIGKILL), Stopped: true, GuardianLost: true})
	r.dead(r.pid)
}

// A guardian that the supervisor kills because trust is about to end is not lost.
func TestGuardianKilledByItsSupervisorIsNotLost(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `echo 1 > ready; while :; do sleep 0.1; done`)
	r.file("ready")
	r.signalGuardian(syscall.SIGSTOP)
	r.term.renew(300 * time.Millisecond)
	r.want(End{Code: 128 + int(syscall.SIGKILL), Stopped: true})
	r.dead(r.pid)
}
