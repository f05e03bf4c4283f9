//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file, unless another tree of processes has it locked.
func tryLock(file *os.File) (locked bool, err error) {
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// sessionAttributes gives a command a new Unix session, or its parent's.
func sessionAttributes(own bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: own}
}
