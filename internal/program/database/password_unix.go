//go:build unix

package database

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a shell command in a new process group. The group is killed when ctx
// ends.
func shell(ctx context.Context, command string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// endGroup kills the remaining processes of a shell command.
func endGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // usually nothing is left
	}
}
