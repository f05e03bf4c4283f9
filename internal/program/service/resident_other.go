//go:build !linux

package service

import "runtime/debug"

// ReturnMemory returns the memory of the start to the system.
func ReturnMemory() { debug.FreeOSMemory() }
