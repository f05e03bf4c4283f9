package demo

import "syscall"

// childAttributes puts a node into its own process group, where Ctrl-C at the
// terminal does not reach it, and makes the kernel kill it with its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
