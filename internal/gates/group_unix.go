//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWithDescendants makes a command's context end also the processes that the
// command has started. Servers of tests have caretakers, which end them when the
// tests have ended.
func endWithDescendants(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
}
