//go:build linux

package guardian

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/internal/testkit"
)

// Processes that were forked during a kill are killed by the next one.
func TestKillRepeatsForForkedProcesses(t *testing.T) {
	child := exec.Command("/bin/sleep", "3600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	alarm, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer alarm.stop()
	g := &guardian{alarm: alarm, killing: true, exited: true, pause: firstKillPause, trust: now().add(time.Hour)}
	g.checkTime()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait() // it was killed
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("invariant 4: a process that was there after the first kill lives on")
		_ = child.Process.Kill()
		<-ended
	}
}

// An orphan can hand its children to this process between the list of orphans and
// its end: after an orphan was found, the list is read again.
func TestOrphansAreListedUntilThereAreNone(t *testing.T) {
	foreign, err := children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("/bin/sleep", "3600")
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	if err := orphan.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, orphan.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if killOrphans(foreign) {
		t.Error("invariant 4: no processes are left, although an orphan had children until it ended")
	}
	if !killOrphans(foreign) {
		t.Error("the orphan was not waited for")
	}
	_ = orphan.Process.Release()
}

// A stopped command receives the request to end.
func TestStoppedCommandIsSignaled(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `trap 'exit 5' TERM; echo 1 > ready; kill -STOP $$; while :; do sleep 0.1; done`,
		func(c *Command) { c.Grace = 10 * time.Second })
	r.file("ready")
	testkit.AwaitWithin(t, patience, "the command is stopped", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(r.pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(stat), ") T ")
	})
	close(r.term.stopping)
	r.want(End{Code: 5, Stopped: true})
}

// The guardian is in its own process group, so that a terminal's signals reach
// only the supervisor, and it survives signals that are sent to it.
func TestGuardianIgnoresSignals(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `while ! [ -e go ]; do sleep 0.01; done; exit 4`)
	guardian, err := parentOf(r.pid)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(guardian); group != guardian || err != nil {
		t.Errorf("the guardian is in process group %d, not in its own, %d: %v", group, guardian, err)
	}
	for _, number := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1} {
		r.signalGuardian(number)
	}
	if err := os.WriteFile(filepath.Join(r.folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(End{Code: 4})
}
