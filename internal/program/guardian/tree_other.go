//go:build unix && !linux

package guardian

import (
	"errors"
	"syscall"
)

// becomeSubreaper does nothing: there are no subreapers.
func becomeSubreaper() error { return nil }

// commandAttributes puts the command into a new process group.
func commandAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func children(int) ([]int, error) { return nil, nil }

// signalLeft signals a group, unless it was signaled already.
func signalLeft(group int, signaled bool, signal syscall.Signal) {
	if !signaled {
		_ = syscall.Kill(-group, signal) // it may have ended
	}
}

// killTree kills a group.
func killTree(group int, _ bool) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// groupEmpty reports whether a group has no member.
func groupEmpty(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

// killOrphans does nothing: orphans do not become children of this process.
func killOrphans([]int) bool { return true }

func descendants(int, []int) ([]int, error) { return nil, nil }
