//go:build !linux

package pgdial

// setUserTimeout does nothing, as in libpq where the system has no such option.
func setUserTimeout(uintptr, int) error { return nil }
