package guardian

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// CommandName is the first argument of a guardian process.
const CommandName = "guardian"

// The exit codes of a shell for an unexecutable command.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Term is the term that a command must not outlive.
type Term interface {
	Remaining() time.Duration
	Stopping() <-chan struct{}
	Context() context.Context
	LockConn() (syscall.RawConn, error)
}

// Command is the command and the way to end it. All fields except Stdin, Stdout, Stderr
// and Signals are required.
type Command struct {
	Path   string   // path of its file
	Args   []string // including the zeroth
	Env    []string
	Stdin  *os.File // nil for no input
	Stdout *os.File // nil for this program's
	Stderr *os.File // nil for this program's

	// Grace is how long before the end of trust the command is requested to end, and how
	// long its remaining processes may take to end.
	Grace time.Duration
	// StopTimeout returns how long the command may take to end when the term is
	// stopping, from the request to the kill. If trust ends first, it is killed then.
	StopTimeout func() time.Duration
	// Lead is how long before the end of trust everything is killed.
	Lead time.Duration
	// Refresh is the time between heartbeats of the session.
	Refresh time.Duration

	// StopSignal returns the signal that requests the command to end when the term is
	// stopping.
	StopSignal func() syscall.Signal
	// Signals are forwarded to the command's process group.
	Signals <-chan os.Signal
	// Started is called with the command's process id.
	Started func(pid int)
	Logger  *slog.Logger
}

// End is how a command ended.
type End struct {
	Code    int  // its exit code, or 128 + the number of the signal of its death
	Stopped bool // it was asked to end or was killed

	// GuardianLost reports a crash of the guardian, or its end by another process.
	GuardianLost bool
}

// ErrNotStarted is matched by the errors of [Run]: no process of the command
// was started.
var ErrNotStarted = errors.New("the command was not started")
