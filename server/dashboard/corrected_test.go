package dashboard

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node that closed its session because its heartbeats were not acknowledged records that when it
// returns. Until then its end looks like a crash. All pages follow.
func TestReasonRecordedLaterIsShown(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{})
	const lease = 2 * time.Second
	_, silentNode := w.wiredNode("api-1", lease, "scheduler")
	w.led("scheduler", "api-1")
	w.wiredNode("api-2", lease, "scheduler")
	w.AwaitWatched(silentNode.ID())
	blocked, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blocked.Exec(t.Context(), pgtest.SQL(w.nodes, "SELECT FROM {nodes} WHERE id = $1 FOR UPDATE"), silentNode.ID()); err != nil {
		t.Fatal(err)
	}
	w.led("scheduler", "api-2")
	if err := blocked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("the role's page says why its leader lost it", func() bool { return w.role("scheduler").PreviousReason == string(history.EndLeaseExpired) })
	row := get[failoversRecord](w, "/api/failovers").Rows[0]
	if row.Reason != string(history.EndLeaseExpired) || *row.Without < 1 || *row.Without != *row.Silent {
		t.Errorf("the failover: %+v; want a silence of at least 1 s", row)
	}
	if r := w.role("scheduler"); *r.Without != *row.Without {
		t.Errorf("the role was without a leader for %v s; want %v s", *r.Without, *row.Without)
	}
	for _, e := range get[list[eventRecord]](w, "/api/events?limit=100").Rows {
		if e.Kind == eventEnded && e.Reason != string(history.EndLeaseExpired) || e.Kind == eventBegan && e.NodeName == "api-2" && *e.Without != *row.Without {
			t.Errorf("the event: %+v", e)
		}
	}
}

// When a node returns after a long time, what it did before is read again.
func TestPastOfReturnedNodeIsReadAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	died := history.NodeChange{At: now.Add(-2 * time.Hour), Node: uuid.UUID{1}, Status: dead, Previous: "active"}
	back := history.NodeChange{At: now, Node: uuid.UUID{1}, Status: "active", Previous: dead}
	p := newSnapshot()
	fillSnapshot(p, reading{nodes: []history.NodeChange{died}})
	if at := p.deathOfReturned([]history.NodeChange{died, back}); !at.Equal(died.At) {
		t.Errorf("the past is read from %v; want %v", at, died.At)
	}
	fillSnapshot(p, reading{nodes: []history.NodeChange{died, back}})
	if at := p.deathOfReturned([]history.NodeChange{back}); !at.IsZero() {
		t.Errorf("the past is read twice, from %v", at)
	}
	if at := p.deathOfReturned([]history.NodeChange{{At: now, Node: uuid.UUID{2}, Status: "active"}}); !at.IsZero() {
		t.Errorf("the past is read for a new node, from %v", at)
	}
}
