//go:build !unix

package mariatest

import "os"

// There are no servers to pause on such systems.
var pauseSignal, resumeSignal os.Signal = os.Interrupt, os.Interrupt
