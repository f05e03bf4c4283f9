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

// controlDescriptor is the guardian's end of the connection with the supervisor.
const controlDescriptor = 3

// Main is the guardian's whole life. Its arguments are what follows the name of
// the program: [CommandName], the path of the command's file, and the command's
// arguments from the zeroth. It returns the exit code of the process, which must
// end at once then.
func Main(args []string, stderr io.Writer) int {
	runtime.LockOSThread() // the command dies with the thread that starts it
	runtime.GOMAXPROCS(1)
	control, err := connection(os.NewFile(controlDescriptor, "control"))
	if err != nil || len(args) < 3 {
		_, _ = fmt.Fprintln(stderr, "tenure: the guardian of a command is started by tenure run, not by hand")
		return 2
	}
	if err := guard(control, args[1], args[2:]); err != nil {
		_ = send(control, report{Failed: err.Error()}) // nobody may be left to hear it
		return 1
	}
	return 0
}

// guard starts the command and returns when it and its descendants have ended.
// An error says why it did not start.
func guard(control *net.UnixConn, path string, argv []string) error {
	limits, decoder, err := receiveFirst(control)
	if err != nil {
		return fmt.Errorf("the supervisor's order: %w", err)
	}
	if err := adopt(); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	ignoreSignals()
	g := &guardian{limits: limits, control: control, alarm: alarm, trust: limits.Deadline}
	if now() >= g.killAt() {
		return errors.New("trust in the term ended before the command was started")
	}
	if g.command, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: commandAttributes(),
	}); err != nil {
		return fmt.Errorf("executing %s: %w", path, err)
	}
	g.tell(report{PID: g.command})
	orders := make(chan order)
	go receive(decoder, orders)
	ends := make(chan ended)
	go reap(ends)
	g.watch(orders, ends)
	g.tell(report{Gone: &g.end})
	return nil
}

// ignoreSignals keeps the guardian alive where the supervisor gets a signal and
// decides what becomes of it. The signals are caught, not ignored, so that the
// command starts with their defaults; one that the whole program was started to
// ignore stays ignored.
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

// ended is a child of the guardian that has ended.
type ended struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for children until there is none.
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

// exitCode is the exit code that a shell would have of a process.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// tell reports to the supervisor. If that is gone, the orders have ended too.
func (g *guardian) tell(r report) { _ = send(g.control, r) }

// The pauses between two kills of a tree, in which processes may have been
// forked.
const (
	firstKillPause = time.Millisecond
	lastKillPause  = 50 * time.Millisecond
)
