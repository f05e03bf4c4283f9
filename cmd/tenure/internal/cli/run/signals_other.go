//go:build !unix

package run

import "os"

// forwardedSignals catches nothing: this system has no such signals.
func forwardedSignals(bool) (signals <-chan os.Signal, stop func()) { return nil, func() {} }
