package postgres

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// Each of the others would read all locks of the server, too.
func TestThreeOldestNodesLookForSessionsWithoutRow(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	var peers []*peer
	var nodes []int32
	for range 5 {
		p := open(t, b, lasting)
		peers, nodes = append(peers, p), append(nodes, p.incarnation)
	}
	stranger := open(t, b, lasting)
	stranger.watch.leave()
	// Set by hand: the row is one that an operator deletes.
	exec(t, b, "DELETE FROM {nodes} WHERE id = $1", stranger.id)
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	looking := func() (found []int32) {
		t.Helper()
		for _, node := range nodes {
			rows, err := conn.Query(t.Context(), b.names.SQL("SELECT incarnation FROM ("+watchStatements[stmtOutside]+") AS o(left_ms, held, incarnation, lease_ms)"), uuid.Nil, 1000, stranger.space, node)
			if err != nil {
				t.Fatal(err)
			}
			strangers, err := pgx.CollectRows(rows, pgx.RowTo[int32])
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case slices.Equal(strangers, []int32{stranger.incarnation}):
				found = append(found, node)
			case !slices.Equal(strangers, []int32{0}):
				t.Errorf("node %d found the sessions %d", node, strangers)
			}
		}
		return found
	}
	if got, want := looking(), nodes[:3]; !slices.Equal(got, want) {
		t.Errorf("the nodes %d look; want %d", got, want)
	}
	// Set by hand: a watch connection that ends is back within milliseconds.
	exec(t, b, "UPDATE {nodes} SET watching = false WHERE incarnation = $1", nodes[0])
	if got, want := looking(), nodes[:4]; !slices.Equal(got, want) { // its watch is down, so its turn does not count
		t.Errorf("the nodes %d look while the oldest has no watch; want %d", got, want)
	}
	peers[1].Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE incarnation = $1", nodes[1])
	if got, want := looking(), nodes; !slices.Equal(got, want) {
		t.Errorf("the nodes %d look while the second is dead, too; want %d", got, want)
	}
}

// A watch reads the dead nodes after each change of the membership. If it tried the locks
// of all nodes, the work of all watches would grow with the square of their number.
func TestWatchTriesOnlyLocksOfTheDead(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.watch.leave() // it would find the new nodes dead
	exec(t, b, `INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start, status)
		SELECT gen_random_uuid(), 1000 + i, 'without a session', '', 1000, 0, now(), CASE i WHEN 1 THEN 'dead' ELSE 'active' END
		FROM generate_series(1, 3) i`)
	tx, err := pgtest.Conn(t, b.connect.Config.ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), b.names.SQL(watchStatements[stmtDeadHeld]), p.id, 1000, p.space); err != nil {
		t.Fatal(err)
	}
	var tried []int64
	const held = `SELECT coalesce(array_agg(objid::bigint), '{}') FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`
	if err := tx.QueryRow(t.Context(), held).Scan(&tried); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tried, []int64{1001}) {
		t.Errorf("the locks of the sessions %d were free and are held; want that of 1001 only", tried)
	}
}
