//go:build unix && !linux

package demo

import "syscall"

// childAttributes puts a node into its own process group, where Ctrl-C at the
// terminal does not reach it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
