package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/guardian"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/printable"
)

// The exit codes of the program.
const (
	ExitDone        = 0 // also after SIGTERM or SIGINT
	ExitNotAcquired = 1 // the role did not go to whom it was wanted for
	ExitUsage       = 2 // the user must change something: an argument, the connection string, a privilege, the schema
	ExitDatabase    = 3 // the database cannot be reached, or not be used

	// Those of "tenure run" for a command, as a shell has them. A command that
	// ended by itself passes its own code on.
	ExitNotExecutable = guardian.CodeNotExecutable
	ExitNotFound      = guardian.CodeNotFound
)

// exitError is an error with its exit code. Without an error there is nothing to
// say: the code is that of a command which has spoken for itself.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// ExitWith is an error with its exit code; err may be nil.
func ExitWith(code int, err error) error { return &exitError{code, err} }

// Usage reports bad input.
func Usage(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// NotAcquired reports a role that did not go to whom it was wanted for.
func NotAcquired(format string, args ...any) error {
	return &exitError{ExitNotAcquired, fmt.Errorf(format, args...)}
}

// userErrors are the errors that go away only when the user changes something.
var userErrors = []error{
	tenure.ErrInvalidConfig, tenure.ErrInvalidRole, tenure.ErrDuplicateRole, tenure.ErrKeyMismatch,
	dberr.ErrPrivilege, dberr.ErrSchema, dberr.ErrWrongMode, dberr.ErrPooled, tenure.ErrUnknownNode, tenure.ErrNameTaken, tenure.ErrLastNode,
}

// ExitCode returns the exit code for the result of a command.
func ExitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &coded):
		return coded.code
	}
	for _, target := range userErrors {
		if errors.Is(err, target) {
			return ExitUsage
		}
	}
	if errors.Is(err, tenure.ErrHeld) || errors.Is(err, tenure.ErrNoLeader) {
		return ExitNotAcquired
	}
	return ExitDatabase
}

// Report writes the result of a command, if it is an error, as one line, or what
// is wrong with a configuration as a line for each fault, and returns its exit code.
func Report(w io.Writer, err error) int {
	var configuration *configurationError
	var coded *exitError
	switch {
	case errors.As(err, &coded) && coded.err == nil: // the command has spoken for itself
	case errors.As(err, &configuration):
		for line := range strings.Lines(configuration.Error()) {
			fmt.Fprintf(w, "tenure: %s\n", Flatten(line))
		}
	case err != nil:
		fmt.Fprintf(w, "tenure: %s\n", OneLine(err))
	}
	return ExitCode(err)
}

// configurationError is everything that is wrong with a configuration, each on a
// line of its own.
type configurationError struct{ err error }

// ConfigurationFaults makes an error whose lines are faults of a configuration.
func ConfigurationFaults(err error) error { return &configurationError{err} }

func (e *configurationError) Error() string { return e.err.Error() }
func (e *configurationError) Unwrap() error { return e.err }

// OneLine is the text of an error on one line.
func OneLine(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted before the end"
	}
	return Flatten(err.Error())
}

// Flatten makes a text of others one line that can be printed: the lines of an
// error, or a name that nobody checked.
func Flatten(text string) string {
	var flat strings.Builder
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		switch so := flat.String(); {
		case line == "" || so == "":
		case strings.HasSuffix(so, ":"):
			flat.WriteString(" ")
		default:
			flat.WriteString("; ")
		}
		flat.WriteString(line)
	}
	return printable.Text(flat.String())
}
