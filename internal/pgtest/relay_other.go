//go:build !unix

package pgtest

import "syscall"

// reloadSignal is not used: HAProxy does not run here.
const reloadSignal = syscall.SIGTERM

func killGroup(int) {}
