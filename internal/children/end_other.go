//go:build !linux

package children

import "syscall"

func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
