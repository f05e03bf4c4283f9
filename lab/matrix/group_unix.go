//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWithDescendants makes a command's context end also the processes that the
// command has started, stopped ones too. The servers are not among them: each has
// a caretaker, which ends it when the command has ended.
func endWithDescendants(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
