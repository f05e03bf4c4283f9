//go:build !linux

package main

import "runtime/debug"

// returnMemory gives the memory back that only starting has needed.
func returnMemory() { debug.FreeOSMemory() }
