//go:build !linux

package service

import "runtime/debug"

// ReturnMemory returns memory that only starting needed to the system.
func ReturnMemory() { debug.FreeOSMemory() }
