//go:build !unix

package cli

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(*os.File) (locked bool, err error) { return false, errors.ErrUnsupported }

func sessionAttributes(bool) *syscall.SysProcAttr { return nil }
