package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// leaseOf is the timing of a session with a lease: it sends heartbeats only when the
// test does.
func leaseOf(lease time.Duration) func(*peerOptions) {
	return func(o *peerOptions) {
		o.timing.Lease, o.timing.RefreshInterval, o.timing.Margin = lease, lease/3, lease/10
	}
}

// loseRow makes a session lead a role, puts it into a state that the server does not
// count as idle, deletes its row, and returns a moment before that. The watch of a
// process that is stopped finds nothing.
func (p *peer) loseRow(role string) time.Time {
	p.t.Helper()
	p.take(role)
	p.stick()
	p.watch.leave()
	last := time.Now()
	exec(p.t, p.backend, "DELETE FROM {nodes} WHERE id = $1", p.id) // Set by hand: an operator deletes it.
	return last
}

// The node of a session without a row may trust its terms for the session's own lease,
// however short the lease of the node is that finds it. The document promises its end by
// the longest lease of both.
func TestSessionWithoutRowIsSparedForLeaseOfEitherNode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const (
		period         = time.Second
		long, short    = 20 * time.Second, 4 * time.Second
		slack          = 4 * time.Second
		promisedAtMost = period + long + long/10
	)
	for _, c := range []struct{ lost, finder time.Duration }{{long, short}, {short, long}} {
		t.Run(fmt.Sprintf("lost %v, finder %v", c.lost, c.finder), func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), WatchPeriod: period})
			lost, finder := open(t, b, leaseOf(c.lost)), open(t, b, leaseOf(c.finder))
			gone := lost.loseRow("scheduler")
			for notified := false; !finder.tryAsNode("scheduler", notified); finder.beat() {
				if time.Since(gone) > promisedAtMost+patience {
					t.Fatal("the session was never ended")
				}
				notified = finder.wait(short / 4)
			}
			took := time.Since(gone)
			t.Logf("led after %v", took.Round(time.Millisecond))
			if took < c.lost {
				t.Errorf("Invariant 1: the role was led %v after the row was gone; its node may trust the term for its lease of %v", took, c.lost)
			}
			if took > promisedAtMost+slack {
				t.Errorf("the role was led %v after the row was gone; the bound is %v", took, promisedAtMost)
			}
		})
	}
}

// TestLeaseOfSessionWithoutRowIsRead is the quick form: it ends when the watch has found
// the session and shows for how long the watch will spare it.
func TestLeaseOfSessionWithoutRowIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lost, finder, want time.Duration }{
		{20 * time.Second, 4 * time.Second, 20*time.Second + 400*time.Millisecond},
		{4 * time.Second, 20 * time.Second, 22 * time.Second},
		{4 * time.Second, 4 * time.Second, 15 * time.Second},
	} {
		t.Run(fmt.Sprintf("lost %v, finder %v", c.lost, c.finder), func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), WatchPeriod: 50 * time.Millisecond})
			lost, finder := open(t, b, leaseOf(c.lost)), open(t, b, leaseOf(c.finder))
			gone := lost.loseRow("scheduler")
			for calls := b.Stats().WatchCalls; b.Stats().WatchCalls < calls+4; { // the second of them began after the row was gone
				finder.wait(50 * time.Millisecond)
				finder.beat()
			}
			finder.watch.leave() // so that its state can be read
			found := time.Now()
			due, known := finder.watch.outside.strangers[lost.incarnation]
			if !known {
				t.Fatal("the watch has not found the session without a row")
			}
			if earliest, latest := gone.Add(c.want), found.Add(c.want); due.Before(earliest) || due.After(latest) {
				t.Errorf("Invariant 1: the session is spared until %v after its row was gone; want %v", due.Sub(gone), c.want)
			}
		})
	}
}
