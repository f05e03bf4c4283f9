//go:build unix

package cli

import (
	"os"
	"syscall"

	"github.com/exactly-one/tenure/internal/program/console"
)

// become replaces this process with another program, which keeps its id and its signals.
func become(path string, args []string) error {
	return console.Usage("cannot start %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
