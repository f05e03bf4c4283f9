package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// unseen waits until a node is recorded as dead, and reports a time of death that no watch
// has seen.
func unseen(t *testing.T, b *Backend, p *peer) {
	t.Helper()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE incarnation = $1", p.Incarnation())
	if row[bool](t, b, "SELECT death_seen FROM {nodes} WHERE incarnation = $1", p.Incarnation()) {
		t.Error("the death counts as seen, and no watch waited when it happened")
	}
}

// endedOnServer waits until the server has ended the sessions of a node.
func endedOnServer(t *testing.T, b *Backend, p *peer) {
	t.Helper()
	eventually(t, b, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'tenure ' || $1 || ' session'", p.opening.Node.Name)
}

// The answers take 100 ms, so the first call that looks for deaths takes that long and has
// not waited.
func TestFarNodeHasNotSeenAnEarlierDeath(t *testing.T) {
	t.Parallel()
	b, _ := farBackend(t, pgtest.Shared(t), 100*time.Millisecond, Config{})
	dead := open(t, b)
	dead.Abort()
	endedOnServer(t, b, dead)
	open(t, b, func(o *peerOptions) { o.name = "later" })
	unseen(t, b, dead)
}

func TestWatchHasNotSeenADeathWhileItWasDown(t *testing.T) {
	t.Parallel()
	r := newRing(t, 2)
	r.cut(0)
	r.nodes[1].Abort()
	endedOnServer(t, r.backend, r.nodes[1])
	r.mu.Lock()
	clear(r.unwatched)
	r.mu.Unlock()
	unseen(t, r.backend, r.nodes[1])
}

// A node that joins ends the session of a silent node, so it sees that end.
func TestWatchSeesTheEndOfASilentNode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	silent := open(t, b, brief)
	silent.stick()
	eventually(t, b, "SELECT last_heartbeat + (lease_ms + 500) * interval '1 millisecond' < clock_timestamp() FROM {nodes} WHERE id = $1", silent.id)
	open(t, b, brief, func(o *peerOptions) { o.name = "later" })
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", silent.id)
	if !row[bool](t, b, "SELECT death_seen FROM {nodes} WHERE id = $1", silent.id) {
		t.Error("the death does not count as seen, and a watch ended the session")
	}
}
