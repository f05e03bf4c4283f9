//go:build unix

package run

import (
	"os"
	"os/signal"
	"syscall"
)

// forwardedSignals catches the signals for the command. Signals ignored from the start of
// this program stay ignored, also for the command. SIGHUP is for this program if it has a
// configuration file to reread.
func forwardedSignals(rereads bool) (signals <-chan os.Signal, stop func()) {
	caught := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		if !signal.Ignored(s) && (s != syscall.SIGHUP || !rereads) {
			signal.Notify(caught, s)
		}
	}
	return caught, func() { signal.Stop(caught) }
}
