//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// besideSupported is false where processes do not share CLOCK_MONOTONIC with this
// program; the functions below are then not called.
const besideSupported = false

const (
	killSignal   = syscall.SIGKILL
	pauseSignal  = syscall.SIGTERM
	resumeSignal = syscall.SIGTERM
)

func monotonic() time.Duration { return 0 }

func groupAttributes() *syscall.SysProcAttr { return nil }

func signalGroup(int, os.Signal) error { return errors.ErrUnsupported }
