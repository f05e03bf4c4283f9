//go:build !unix

package sidecar

// descriptors is how many files and connections the process may have open.
func descriptors() int { return 2 * maxConnections }
