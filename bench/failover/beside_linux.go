package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const besideSupported = true

// Signals for a process group.
const (
	killSignal   = syscall.SIGKILL
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// monotonic reads CLOCK_MONOTONIC, which all processes of a host share.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("failover: CLOCK_MONOTONIC: %v", err)) // every kernel has it
	}
	return time.Duration(t.Nano())
}

func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func signalGroup(pid int, signal os.Signal) error {
	number, ok := signal.(syscall.Signal)
	if !ok {
		return fmt.Errorf("%v is not a signal of the kernel", signal)
	}
	return syscall.Kill(-pid, number)
}
