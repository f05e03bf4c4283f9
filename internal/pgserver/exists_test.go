package pgserver

import (
	"errors"
	"os"
	"syscall"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// exists reports whether there is a process with an id.
func exists(pid int) bool {
	return !errors.Is(sandbox.Signal(pid, syscall.Signal(0)), os.ErrProcessDone)
}
