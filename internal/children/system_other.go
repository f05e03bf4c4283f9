//go:build !linux

package children

import "syscall"

func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// awaitStop does nothing: the signal may need a moment to stop a child.
func awaitStop(int) error { return nil }
