//go:build !unix

package sandbox

import "syscall"

// PauseSignal and ResumeSignal have no counterparts on such systems, which run
// no private servers either.
const (
	PauseSignal  = syscall.SIGINT
	ResumeSignal = syscall.SIGINT
)
