//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"

	"github.com/exactly-one/tenure/internal/program/console"
)

// The signal to a process at its parent's death belongs to its first thread. Only this
// thread keeps it for the program the process becomes.
func init() { runtime.LockOSThread() }

// become replaces this process with another program. Its id and its signals stay.
func become(path string, args []string) error {
	return console.Usage("cannot start %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
