//go:build !unix

package guardian

import (
	"fmt"
	"io"
)

// Main refuses: there are no guardians on this system.
func Main(_ []string, stderr io.Writer) int {
	_, _ = fmt.Fprintln(stderr, "tenure: the guardian of a command is started by tenure run, not by hand")
	return 2
}

// Run refuses: commands cannot be run on this system.
func Run(Seat, Command) (End, error) {
	return End{}, fmt.Errorf("%w: running a command needs a Unix system", ErrNotStarted)
}
