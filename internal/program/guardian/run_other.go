//go:build !unix

package guardian

import (
	"context"
	"fmt"
	"io"
	"os/exec"
)

// Main returns an error: there are no guardians on this system.
func Main(_ []string, stderr io.Writer) int {
	_, _ = fmt.Fprintln(stderr, "tenure: the guardian can only be started by tenure run")
	return 2
}

// Run returns an error: commands cannot be run on this system.
func Run(Term, Command) (End, error) {
	return End{}, fmt.Errorf("%w: running a command needs a Unix system", ErrNotStarted)
}

// ReapOrphans does nothing: no process must wait for its children.
func ReapOrphans(context.Context) {}

// StartChild starts a command.
func StartChild(c *exec.Cmd) (waited func(), err error) { return func() {}, c.Start() }
