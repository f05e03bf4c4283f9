//go:build unix

package sandbox

import "syscall"

// PauseSignal stops all threads of a process until ResumeSignal.
const (
	PauseSignal  = syscall.SIGSTOP
	ResumeSignal = syscall.SIGCONT
)
