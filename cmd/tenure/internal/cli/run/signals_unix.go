//go:build unix

package run

import (
	"os"
	"os/signal"
	"syscall"
)

// forwardedSignals catches the signals that mean the command, not this program.
// Those that this program was started to ignore stay ignored, for the command
// too. SIGHUP means this program where it has a configuration file to read again.
func forwardedSignals(rereads bool) (signals <-chan os.Signal, stop func()) {
	caught := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		if !signal.Ignored(s) && (s != syscall.SIGHUP || !rereads) {
			signal.Notify(caught, s)
		}
	}
	return caught, func() { signal.Stop(caught) }
}
