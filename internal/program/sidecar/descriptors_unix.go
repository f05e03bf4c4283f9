//go:build unix

package sidecar

import (
	"math"
	"syscall"
)

// descriptors is how many files and connections the process may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 2 * maxConnections
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // the type differs between systems
}
