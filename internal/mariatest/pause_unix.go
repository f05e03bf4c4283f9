//go:build unix

package mariatest

import (
	"os"
	"syscall"
)

var pauseSignal, resumeSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT
