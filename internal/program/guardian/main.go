//go:build unix

package guardian

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// controlDescriptor is the guardian's end of the connection to the supervisor.
const controlDescriptor = 3

// Main runs a guardian. Its arguments follow the program's name: [CommandName], the path
// of the command's file, and the command's arguments including the zeroth. It returns the
// exit code of the process, which must then exit immediately.
func Main(args []string, stderr io.Writer) int {
	runtime.LockOSThread() // the command dies with its parent thread
	runtime.GOMAXPROCS(1)
	control, err := connection(os.NewFile(controlDescriptor, "control"))
	if err != nil || len(args) < 3 {
		_, _ = fmt.Fprintln(stderr, "tenure: the guardian can only be started by tenure run")
		return 2
	}
	if err := guard(control, args[1], args[2:]); err != nil {
		_ = send(control, report{Failed: err.Error()}) // the supervisor may have exited
		return 1
	}
	return 0
}

// guard starts the command and returns when it and its descendants have ended.
// An error says why it did not start.
func guard(control *net.UnixConn, path string, argv []string) error {
	limits, decoder, err := receiveFirst(control)
	if err != nil {
		return fmt.Errorf("read the supervisor's order: %w", err)
	}
	if err := becomeSubreaper(); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	ignoreSignals()
	g := &guardian{limits: limits, control: control, alarm: alarm, trust: limits.Deadline}
	orders := make(chan order)
	go receive(decoder, orders) // exits with the control connection or this process
	if err := g.awaitTrust(orders); err != nil {
		return err
	}
	g.report(report{Begins: true})
	if g.command, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: commandAttributes(),
	}); err != nil {
		return fmt.Errorf("execute %s: %w", path, err)
	}
	g.report(report{PID: g.command})
	ends := make(chan ended)
	go reap(ends) // exits with this process
	g.watch(orders, ends)
	g.report(report{Gone: &g.end})
	return nil
}

// ignoreSignals keeps the guardian running when a terminal or service manager signals the
// whole process group; the supervisor decides. The signals are caught, not ignored, so
// the command starts with their defaults. A signal ignored from the start of the program
// stays ignored.
func ignoreSignals() {
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	} {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// ended is an ended child of the guardian.
type ended struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for children until there are none.
func reap(ends chan<- ended) {
	defer close(ends)
	for {
		var e ended
		var err error
		e.pid, err = syscall.Wait4(-1, &e.status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return
		default:
			ends <- e
		}
	}
}

// exitCode returns a shell's exit code for a process.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// report sends a report to the supervisor. If the supervisor has exited, the
// orders have ended too.
func (g *guardian) report(r report) { _ = send(g.control, r) }

// The pauses between two kills of a process tree, in which processes may have
// forked.
const (
	firstKillPause = time.Millisecond
	lastKillPause  = 50 * time.Millisecond
)
