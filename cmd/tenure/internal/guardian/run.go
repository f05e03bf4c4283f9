package guardian

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// CommandName is the first argument of a process that is to be a guardian.
const CommandName = "guardian"

// The exit codes of a shell for a command that cannot be executed.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Term is what a command must not outlive: a term.
type Term interface {
	Remaining() time.Duration
	Stopping() <-chan struct{}
	Context() context.Context
	LockConn() (syscall.RawConn, error)
}

// Command says what to run and how it ends. All fields are required, but for
// Stdin, Stderr and Signals.
type Command struct {
	Path   string   // of its file
	Args   []string // from the zeroth
	Env    []string
	Stdin  *os.File // nil: nothing to read
	Stderr *os.File // nil: this program's

	// Grace is how long the command has to end, from the request to the kill,
	// and how long before the end of trust it is asked.
	Grace time.Duration
	// Lead is how long before the end of trust everything is killed.
	Lead time.Duration
	// Refresh is the time between heartbeats of the session.
	Refresh time.Duration

	// StopSignal returns the signal to ask with when the seat is given up.
	StopSignal func() syscall.Signal
	// Signals are handed on to the command's process group.
	Signals <-chan os.Signal
	// Started is called with the command's process id.
	Started func(pid int)
	Logger  *slog.Logger
}

// End is how a command ended.
type End struct {
	Code    int  // its exit code, or 128 + the number of the signal that killed it
	Stopped bool // it did not end by itself
}

// ErrNotStarted is matched by the errors of [Run]: no process of the command's
// was started.
var ErrNotStarted = errors.New("the command was not started")
