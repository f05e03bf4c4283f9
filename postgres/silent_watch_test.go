package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// stallWatch stops the server's process of the watch connection, which therefore
// receives nothing. The node notices that after most of its lease.
func (p *peer) stallWatch() {
	p.t.Helper()
	const waits = "SELECT coalesce(wait_event, '') = 'advisory' FROM pg_stat_activity WHERE application_name = $1"
	for since := time.Now(); !row[bool](p.t, p.backend, waits, watchOf(p)); { // one that is alone waits for a notification
		if time.Since(since) > patience {
			p.t.Fatal("the watch does not wait for a node")
		}
		p.wait(20 * time.Millisecond)
	}
	pid := row[int32](p.t, p.backend, "SELECT pid FROM pg_stat_activity WHERE application_name = $1", watchOf(p))
	pgtest.PauseBackend(p.t, p.backend.connect.Config.ConnString(), pid, "advisory")
}

// leadsAfter campaigns as an engine does, and returns when the role was acquired.
func (p *peer) leadsAfter(role string, since time.Time) time.Duration {
	p.t.Helper()
	for notified := false; !p.tryAsNode(role, notified); p.beat() {
		if time.Since(since) > patience {
			p.t.Fatal("the session was never ended")
		}
		notified = p.wait(stuckLease / 8)
	}
	return time.Since(since)
}

// The watch connection that would notice a stuck session falls silent shortly before
// that session is due. Its own silence would be noticed much later.
func TestStuckSessionIsTerminatedAlthoughWatchFallsSilent(t *testing.T) {
	t.Parallel()
	const promised = stuckLease + stuckLease/10
	margin := func(o *peerOptions) { o.timing.Margin = stuckLease / 10 }
	// Each opens the stuck session last: it is not to expire while others open. The
	// oldest node watches the youngest.
	for name, stick := range map[string]func(t *testing.T, b *Backend) (rival *peer, last time.Time){
		"of its successor": func(t *testing.T, b *Backend) (*peer, time.Time) {
			rival := open(t, b, margin)
			stuck := open(t, b, brief)
			stuck.take("scheduler")
			rival.stallWatch()
			return rival, stuck.stick()
		},
		"of its successor, whose node is stopped": func(t *testing.T, b *Backend) (*peer, time.Time) {
			successor, rival := open(t, b, margin), open(t, b, margin)
			stuck := open(t, b, brief)
			stuck.take("scheduler")
			successor.stallWatch()
			return rival, stuck.stick()
		},
		"of its node's next session": func(t *testing.T, b *Backend) (*peer, time.Time) {
			other := open(t, b, margin) // for which the watch of the next session waits
			other.watch.leave()
			stuck := open(t, b, brief)
			stuck.take("scheduler")
			stuck.watch.leave()
			last := stuck.stick()
			rival := open(t, b, margin, func(o *peerOptions) { o.id = stuck.id })
			rival.watch.leave() // a call of a watch that knows such a session is short
			return rival, last
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "of its successor" {
				pgtest.Long(t)
			}
			t.Parallel()
			rival, last := stick(t, newBackend(t))
			rival.refused("scheduler")
			took := rival.leadsAfter("scheduler", last)
			t.Logf("led %v after the last heartbeat", took.Round(time.Millisecond))
			if bound := promised + stuckLease/8; took > bound+stuckLease/2 { // what a busy machine may add
				t.Errorf("the role was led %v after the last heartbeat; the bound is %v", took, bound)
			}
		})
	}
}
