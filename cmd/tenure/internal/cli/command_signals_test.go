//go:build unix

package cli

import (
	"syscall"
	"testing"
)

// Other signals are passed on to the command only.
func TestCommandGetsSignals(t *testing.T) {
	t.Parallel()
	script := `for s in HUP QUIT USR1 USR2; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.1; done`
	node := launch(t, newPlace(t).guarded(script)...)
	node.want("ready")
	for _, signal := range []struct {
		number syscall.Signal
		name   string
	}{{syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}} {
		node.signal(signal.number)
		node.want(signal.name)
	}
}
