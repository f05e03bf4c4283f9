//go:build unix

package pgtest

import "syscall"

// reloadSignal makes HAProxy read its configuration again.
const reloadSignal = syscall.SIGUSR2

// killGroup kills a program with all its processes, those too that it is starting: the
// sandbox makes every program the leader of a group. The end of the program shows whether
// the signal was sent.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
