//go:build !linux

package children

import "syscall"

// EndsWithParent are the attributes of a process that does not outlive this one, where the
// system can do that.
func EndsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// awaitStop does nothing: the signal may need a moment to stop a child.
func awaitStop(int) error { return nil }
