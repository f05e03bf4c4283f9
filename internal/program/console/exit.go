package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/guardian"
)

// The exit codes of the program.
const (
	ExitDone        = 0 // also after SIGTERM or SIGINT
	ExitNotAcquired = 1 // the role was not acquired, or not by the requested node
	ExitUsage       = 2 // the user must change an argument, the connection string, a privilege or the schema
	ExitDatabase    = 3 // the database cannot be reached or used

	// The codes of "tenure run" for a command, as in a shell. If the command ends on its
	// own, its exit code is returned.
	ExitNotExecutable = guardian.CodeNotExecutable
	ExitNotFound      = guardian.CodeNotFound
)

// exitError is an error with an exit code. If err is nil, nothing is printed:
// the command has already printed its errors.
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

// ExitWith returns an error with an exit code; err may be nil.
func ExitWith(code int, err error) error { return &exitError{code, err} }

// Usage returns an error for invalid input.
func Usage(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// NotAcquired returns an error for a role the requested node did not acquire.
func NotAcquired(format string, args ...any) error {
	return &exitError{ExitNotAcquired, fmt.Errorf(format, args...)}
}

// userErrors persist until the user changes something.
var userErrors = []error{
	tenure.ErrInvalidConfig, tenure.ErrInvalidRole, tenure.ErrDuplicateRole, tenure.ErrKeyMismatch,
	dberr.ErrPrivilege, dberr.ErrSchema, dberr.ErrWrongMode, dberr.ErrPooled, tenure.ErrUnknownNode, tenure.ErrNotActive, tenure.ErrNameTaken, tenure.ErrLastNode,
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

// Report prints the error of a command, if there is one, as one line, or one
// line per fault of a configuration. It returns the exit code.
func Report(w io.Writer, err error) int {
	var configuration *configurationError
	var coded *exitError
	switch {
	case errors.As(err, &coded) && coded.err == nil: // the command has already printed its errors
	case errors.As(err, &configuration):
		for line := range strings.Lines(configuration.Error()) {
			fmt.Fprintf(w, "tenure: %s\n", Flatten(line))
		}
	case err != nil:
		fmt.Fprintf(w, "tenure: %s\n", OneLine(err))
	}
	return ExitCode(err)
}

// configurationError holds all faults of a configuration, one per line.
type configurationError struct{ err error }

// ConfigurationFaults returns an error for the faults of a configuration, one on each
// line.
func ConfigurationFaults(err error) error { return &configurationError{err} }

func (e *configurationError) Error() string { return e.err.Error() }
func (e *configurationError) Unwrap() error { return e.err }

// OneLine returns the text of an error on one line.
func OneLine(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return Flatten(err.Error())
}

// Flatten makes an external text printable on one line, for example an error or
// an unchecked name. Of equal lines it keeps the first.
func Flatten(text string) string {
	var flat strings.Builder
	seen := map[string]bool{"": true}
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if seen[line] {
			continue
		}
		seen[line] = true
		switch so := flat.String(); {
		case so == "":
		case strings.HasSuffix(so, ":"):
			flat.WriteString(" ")
		default:
			flat.WriteString("; ")
		}
		flat.WriteString(line)
	}
	return printable.Text(flat.String())
}
