//go:build linux

package guardian

import (
	"testing"
	"time"
)

// A command that ends gracefully has its time only while the term is renewed: it is
// killed before trust ends. The lead is the time that a busy machine has for killing.
func TestLossDuringGracefulEndKillsBeforeTrustEnds(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `trap '' TERM; echo 1 > ready; while :; do sleep 0.1; done`, func(c *Command) {
		c.Lead, c.StopTimeout = 10*time.Second, func() time.Duration { return time.Hour }
	})
	r.file("ready")
	close(r.term.stopping)
	r.term.renew(11 * time.Second)
	r.wait()
	if r.term.Remaining() == 0 {
		t.Error("invariant 4: a command that ended gracefully outlived the trust")
	}
	r.dead(r.pid)
}
