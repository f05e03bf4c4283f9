package main

import "syscall"

// dieWithParent ends a child with the benchmark.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
