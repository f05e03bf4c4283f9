//go:build linux

package guardian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What each side does without the other: tests of both together cannot show,
// because either does what the other fails to do.

// supervisorName is the first argument of a process that supervises a script in a
// term that is not renewed; the others are when trust ends and the script.
const supervisorName = "supervisor"

// supervise is the whole life of such a process.
func supervise(args []string) int {
	until, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return 2
	}
	term := &fakeTerm{until: time.Now().Add(moment(until).sub(now())), stopping: make(chan struct{}), ctx: context.Background()}
	_, err = Run(term, Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", args[1]}, Env: os.Environ(),
		Grace: 6 * time.Second, Lead: 5 * time.Second, Refresh: time.Second,
		StopSignal:  func() syscall.Signal { return syscall.SIGTERM },
		StopTimeout: func() time.Duration { return 6 * time.Second },
		Started:     func(pid int) { fmt.Println(pid) },
		Logger:      slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
	if err != nil {
		return 1
	}
	return 0
}

// apart is a command whose supervisor is a separate process.
type apart struct {
	t                             *testing.T
	supervisor                    *exec.Cmd
	output                        *bufio.Reader // the command's process id, and the log
	guardian, command, descendant int
}

// beginApart starts a script, which writes the number of its last process into
// the file "last", under its own supervisor.
func beginApart(t *testing.T, until moment, script string) *apart {
	t.Helper()
	if err := becomeSubreaper(); err != nil { // so that what is left comes here
		t.Fatal(err)
	}
	folder := t.TempDir()
	a := &apart{t: t, supervisor: exec.Command("/proc/self/exe", supervisorName, strconv.FormatInt(int64(until), 10),
		"cd "+folder+" && { "+script+"\n}")}
	a.supervisor.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	a.supervisor.Stderr = os.Stderr
	output, err := a.supervisor.StdoutPipe()
	if err == nil {
		err = a.supervisor.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.clean)
	a.output = bufio.NewReader(output)
	if _, err = fmt.Fscanln(a.output, &a.command); err == nil {
		a.guardian, err = parentOf(a.command)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.descendant = (&run{t: t, folder: folder}).file("last")
	return a
}

// clean kills what a failed test has left.
func (a *apart) clean() {
	_ = a.supervisor.Process.Kill()
	_ = a.supervisor.Wait()
	for !liveGuardians.killOrphans(nil) { // the commands of parallel tests live on
		time.Sleep(time.Millisecond)
	}
}

// signal sends a signal to one of the processes.
func (a *apart) signal(pid int, number syscall.Signal) {
	a.t.Helper()
	if err := syscall.Kill(pid, number); err != nil {
		a.t.Fatal(err)
	}
}

// awaitEnd waits until a process, which need not be a child, has ended.
func (a *apart) awaitEnd(what string, pid int) {
	a.t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = unix.Close(process) }()
	limit := time.Now().Add(patience)
	for {
		poll := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(max(0, time.Until(limit).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			a.t.Fatal(err)
		case n == 0:
			a.t.Fatalf("invariant 4: %s, process %d, lives on", what, pid)
		default:
			return
		}
	}
}

// wantGone checks that a process lives no more, now.
func (a *apart) wantGone(what string, pid int) {
	a.t.Helper()
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		a.t.Errorf("invariant 4: %s lives on: %s", what, stat)
	}
}

// A guardian without a supervisor kills everything and exits when nothing is
// running: until then it holds the lock.
func TestGuardianKillsAllWhenSupervisorDies(t *testing.T) {
	for what, script := range stubborn {
		t.Run(what, func(t *testing.T) {
			a := beginApart(t, now().add(time.Hour), script)
			a.signal(a.supervisor.Process.Pid, syscall.SIGKILL)
			a.awaitEnd("the guardian of a supervisor that was killed", a.guardian)
			a.wantGone("the command", a.command)
			a.wantGone("its descendant", a.descendant)
		})
	}
}

// The guardian kills everything before trust ends without a supervisor. The
// lead is the time that a busy machine has for killing.
func TestGuardianKillsWhileSupervisorIsStopped(t *testing.T) {
	t.Parallel()
	until := now().add(10 * time.Second)
	a := beginApart(t, until, stubborn["daemon in its own session"])
	a.signal(a.supervisor.Process.Pid, syscall.SIGSTOP)
	a.awaitEnd("the guardian", a.guardian)
	if late := now().sub(until); late > 0 {
		t.Errorf("invariant 4: the command lived %v longer than the trust in its term", late)
	}
	a.wantGone("the command", a.command)
	a.wantGone("its descendant", a.descendant)
}

// The kernel kills the command, and the supervisor kills the rest when it
// continues.
func TestCommandDiesWithGuardianOfStoppedSupervisor(t *testing.T) {
	a := beginApart(t, now().add(time.Hour), "exec > /dev/null; "+stubborn["daemon in its own session"]) // only the supervisor writes
	a.signal(a.supervisor.Process.Pid, syscall.SIGSTOP)
	a.signal(a.guardian, syscall.SIGKILL)
	a.awaitEnd("the command of a guardian that was killed", a.command)
	a.signal(a.supervisor.Process.Pid, syscall.SIGCONT)
	a.awaitEnd("the supervisor", a.supervisor.Process.Pid)
	a.wantGone("its descendant", a.descendant)
}

// A supervisor whose descriptors are used up cannot list the processes that a killed
// guardian has left. That it finds none is no proof: it waits until it can list them.
func TestSupervisorWithoutDescriptorsLeavesNothing(t *testing.T) {
	a := beginApart(t, now().add(time.Hour), "exec > /dev/null; "+stubborn["daemon in its own session"]) // only the supervisor writes
	var before unix.Rlimit
	if err := unix.Prlimit(a.supervisor.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(a.supervisor.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	a.signal(a.guardian, syscall.SIGKILL)
	warning, err := a.output.ReadString('\n') // or the end of the supervisor
	if err == nil && !strings.Contains(warning, "too many open files") {
		t.Errorf("the log does not say why the role is kept: %s", warning)
	}
	_ = unix.Prlimit(a.supervisor.Process.Pid, unix.RLIMIT_NOFILE, &before, nil) // it may have ended
	a.awaitEnd("the supervisor", a.supervisor.Process.Pid)
	a.wantGone("the command", a.command)
	a.wantGone("its descendant", a.descendant)
}
