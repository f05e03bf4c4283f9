package acceptance_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node dies while the node that watches it is frozen. Another node finds this death when
// it has ended the frozen node's session, up to a lease later.
func TestDeathBehindAFrozenWatcherIsNotSeen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dead := c.joinWired("dead", address(pgtest.Shared(t)))
	frozen := c.joinWired("frozen", address(pgtest.Shared(t)))
	c.join("later")
	c.awaitWatched(dead)
	c.awaitWatched(frozen)
	frozen.wire.Stall()
	if err := dead.wire.Close(); err != nil {
		t.Fatal(err)
	}
	admin := pgtest.Conn(t, c.dsn)
	for _, m := range []*member{frozen, dead} {
		eventually(t, admin, "SELECT status = 'dead' FROM "+c.quoted("nodes")+" WHERE id = $1", m.ID())
	}
	var seen map[string]bool
	err := admin.QueryRow(t.Context(), "SELECT json_object_agg(name, death_seen) FROM "+c.quoted("nodes")+" WHERE status = 'dead'").Scan(&seen)
	if err != nil {
		t.Fatal(err)
	}
	if seen["dead"] {
		t.Error("the death counts as seen, and the node that watched it was frozen")
	}
	if !seen["frozen"] {
		t.Error("the end of the frozen node does not count as seen, and a watch ended its session")
	}
}
