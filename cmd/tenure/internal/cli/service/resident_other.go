//go:build !linux

package service

import "runtime/debug"

// ReturnMemory gives the memory back that only starting has needed.
func ReturnMemory() { debug.FreeOSMemory() }
