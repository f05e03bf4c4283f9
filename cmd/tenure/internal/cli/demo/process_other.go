//go:build !unix

package demo

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
