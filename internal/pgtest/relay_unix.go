//go:build unix

package pgtest

import "syscall"

// reloadSignal makes HAProxy read its configuration again.
const reloadSignal = syscall.SIGUSR2
