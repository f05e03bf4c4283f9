//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"

	"github.com/exactly-one/tenure/internal/program/console"
)

// The signal that a process gets when its parent dies belongs to its first thread. Only that
// thread keeps it for the program that this process becomes.
func init() { runtime.LockOSThread() }

// become replaces this process with another program, which keeps its id and its signals.
func become(path string, args []string) error {
	return console.Usage("cannot start %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
