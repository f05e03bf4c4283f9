package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// ring is some nodes in the order of the ring, whose watch connections can be kept
// from reconnecting.
type ring struct {
	t       *testing.T
	backend *Backend
	nodes   []*peer

	mu        sync.Mutex
	unwatched map[string]bool // application names that cannot connect
}

func newRing(t *testing.T, size int) *ring {
	t.Helper()
	server := pgtest.Shared(t)
	r := &ring{t: t, unwatched: map[string]bool{}}
	schema := server.Schema(t)
	r.backend = backendOn(t, server.DSN(), Config{
		Schema: schema,
		Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
			r.mu.Lock()
			refused := r.unwatched[config.RuntimeParams["application_name"]]
			r.mu.Unlock()
			if refused {
				return nil, errors.New("kept from connecting")
			}
			return pgx.ConnectConfig(ctx, config)
		},
	})
	for i := range size {
		p := open(t, r.backend, lasting, func(o *peerOptions) { o.name = fmt.Sprintf("%s %d", schema, i) })
		r.nodes = append(r.nodes, p)
		r.attend(p)
	}
	r.settled()
	return r
}

// attend waits for notifications on a session until the test ends, as an engine
// does.
func (r *ring) attend(p *peer) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, err := p.Wait(ctx); err != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func watchOf(p *peer) string {
	return link.ApplicationName("tenure", p.opening.Node.Name+" watch")
}

// cut ends the watch connections of nodes and keeps them from reconnecting.
func (r *ring) cut(nodes ...int) {
	r.t.Helper()
	r.mu.Lock()
	for _, i := range nodes {
		r.unwatched[watchOf(r.nodes[i])] = true
	}
	r.mu.Unlock()
	for _, i := range nodes {
		exec(r.t, r.backend, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", watchOf(r.nodes[i]))
	}
	for _, i := range nodes {
		eventually(r.t, r.backend, "SELECT NOT watching FROM {nodes} WHERE id = $1", r.nodes[i].id)
	}
}

// settled makes every watch read the ring again, and waits until it has.
func (r *ring) settled() {
	r.t.Helper()
	now := row[time.Time](r.t, r.backend, "SELECT clock_timestamp() FROM {installation}")
	exec(r.t, r.backend, watchStatements[stmtNext])
	var watches []string
	for _, p := range r.nodes {
		if !p.watch.down.Load() && !p.watch.stopped() {
			watches = append(watches, watchOf(p))
		}
	}
	eventually(r.t, r.backend, `
		SELECT count(*) = cardinality($1::text[])
		FROM pg_stat_activity
		WHERE application_name = ANY ($1) AND query LIKE '%{watch}%' AND state = 'active' AND query_start > $2`, watches, now)
}

// kill ends nodes at the same time, and returns how long it took until the last of
// them was marked as dead.
func (r *ring) kill(nodes ...int) time.Duration {
	r.t.Helper()
	conn := pgtest.Conn(r.t, r.backend.connect.Config.ConnString())
	var ids []string
	for _, i := range nodes {
		ids = append(ids, r.nodes[i].id.String())
	}
	start := time.Now()
	for _, i := range nodes {
		r.nodes[i].Abort()
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		var dead int
		err := conn.QueryRow(context.Background(), r.backend.names.SQL(
			"SELECT count(*) FROM {nodes} WHERE status = 'dead' AND id::text = ANY ($1)"), ids).Scan(&dead)
		if err != nil {
			r.t.Fatal(err)
		}
		if dead == len(nodes) {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			r.t.Fatalf("after %v %d of %d nodes are marked as dead", patience, dead, len(nodes))
		}
	}
}

// soon is how long the detection of a death may take while healthy nodes watch. On
// an idle machine it takes 5 to 50 ms, and on no machine as long as a lease, which
// is how long it takes if no node watches.
const soon = 4 * time.Second

func (r *ring) died(what string, took, limit time.Duration) {
	r.t.Helper()
	r.t.Logf("%s: all marked as dead after %v", what, took.Round(time.Millisecond))
	if took > limit {
		r.t.Errorf("%s: all marked as dead after %v, want at most %v", what, took, limit)
	}
}

func TestConcurrentDeathsOfNeighborsAreDetected(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := newRing(t, 9)
	r.died("one node", r.kill(8), soon)
	r.settled()
	r.died("three in a row", r.kill(2, 3, 4), soon)
	r.settled()
	r.died("all but two, the ends of the ring among them", r.kill(7, 0, 1), soon)
}

// If the nodes next to dead nodes cannot detect the deaths, the nodes after
// them do.
func TestDeathsAreDetectedBehindNodesWithoutWatch(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := newRing(t, 8)
	r.cut(2, 3, 4)
	r.settled()
	r.died("before three nodes without a watch", r.kill(1), soon)
	r.settled()
	r.died("a node without a watch between two such nodes", r.kill(3), soon)
	r.settled()
	r.died("a node without a watch and one before it", r.kill(4, 0), soon)

	r.cut(6, 7)
	r.died("with one watch left that has just been notified", r.kill(2, 6), 2*soon)
}

// A node whose watch connection recovers takes its place in the ring again.
func TestWatchConnectionRecovers(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := newRing(t, 3)
	r.cut(1)
	r.mu.Lock()
	clear(r.unwatched)
	r.mu.Unlock()
	eventually(t, r.backend, "SELECT watching FROM {nodes} WHERE id = $1", r.nodes[1].id)
	r.settled()
	r.cut(2)
	r.settled()
	r.died("before the node that watches again", r.kill(0), soon)
	if stats := r.backend.Stats(); stats.WatchFailures != 2 || stats.WatchCalls < 5 { // three nodes, of which two reconnected
		t.Errorf("counted: %+v", stats)
	}

	// A new session watches, whatever the state of the last one.
	r.mu.Lock()
	clear(r.unwatched)
	r.mu.Unlock()
	open(t, r.backend, func(o *peerOptions) { o.id = r.nodes[2].id })
	if !row[bool](t, r.backend, "SELECT watching FROM {nodes} WHERE id = $1", r.nodes[2].id) {
		t.Error("the new session of a node whose last one had no watch does not watch")
	}
}

// Many nodes that end at the same time cost every watch one call, not one each: it reads
// the ring again at each attempt and reports later.
func TestWatchReturnsOnceForManyMoves(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := newRing(t, 2)
	conn := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	seen := row[int64](t, r.backend, "SELECT last_value FROM {membership}")
	exec(t, r.backend, watchStatements[stmtNext])
	var (
		event      string
		membership int64
		began      = row[time.Time](t, r.backend, "SELECT clock_timestamp() FROM {installation}")
		ended      time.Time
	)
	moving := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	moved := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		_, err := moving.Exec(context.Background(), r.backend.names.SQL(watchStatements[stmtNext]))
		moved <- err
	})
	err := conn.QueryRow(t.Context(), r.backend.names.SQL("SELECT event, membership, clock_timestamp() FROM {watch}($1, 0, $2, $3, 20000, 1000)"),
		r.nodes[1].incarnation, r.nodes[1].space, seen).Scan(&event, &membership, &ended)
	if err := errors.Join(err, <-moved); err != nil {
		t.Fatal(err)
	}
	if event != "moved" || membership != seen+2 {
		t.Errorf("got %q and %d, want moved and %d", event, membership, seen+2)
	}
	if took := ended.Sub(began); took < 500*time.Millisecond {
		t.Errorf("returned %v after the first move, want at least 500ms later", took)
	}
}

// A node that joins costs the watches of the others no call, however many they are: if each
// of n watches returned for each of n nodes that join together, the work of all would grow
// with the square. A death costs each one call.
func TestJoinCostsOtherWatchesNoCall(t *testing.T) {
	t.Parallel()
	const own, canceled = 2, 1 // of the node that joins; of the oldest node, between two blocks of the function
	for _, size := range []int{3, 10} {
		r := newRing(t, size)
		others := slices.Clone(r.nodes)
		before := r.backend.Stats().WatchCalls
		r.nodes = append(r.nodes, open(t, r.backend, lasting))
		joined := row[time.Time](t, r.backend, "SELECT clock_timestamp() FROM {installation}")
		later := func(_ int32, began time.Time, _ time.Duration) bool { return began.After(joined.Add(time.Second)) }
		for _, p := range others { // each has read that the membership moved
			awaitAttempt(t, p, "a second after the join", later)
		}
		if calls := r.backend.Stats().WatchCalls - before; calls > own+canceled {
			t.Errorf("%d nodes: a join cost %d calls of watches, want %d", size, calls, own)
		}
		before = r.backend.Stats().WatchCalls
		r.kill(size)
		late, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
		for r.backend.Stats().WatchCalls < before+uint64(size) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%d nodes: a death cost %d calls of watches, want one of each", size, r.backend.Stats().WatchCalls-before)
			}
		}
		tick.Stop()
	}
}

// The connection of a watch fails after it has noticed a death and before it has recorded
// that, and another node records it. Then the attempts of this node ask again who leads, so
// that they end when nothing changes.
func TestDeathThatAnotherNodeRecordsIsForgotten(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := newRing(t, 3)
	node, dying := r.nodes[0], r.nodes[2] // the oldest one watches the youngest
	locked := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	if _, err := locked.Exec(t.Context(), r.backend.names.SQL("BEGIN; SELECT FROM {nodes} WHERE id = '"+dying.id.String()+"' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	dying.Abort()
	eventually(t, r.backend, "SELECT wait_event = 'transactionid' FROM pg_stat_activity WHERE application_name = $1", watchOf(node))
	r.cut(0)
	if _, err := locked.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	eventually(t, r.backend, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", dying.id)
	if dead, _ := node.deaths.Arguments(); len(dead) != 1 {
		t.Fatalf("deaths that the node has not recorded: %v, want one", dead)
	}
	r.mu.Lock()
	clear(r.unwatched)
	r.mu.Unlock()
	eventually(t, r.backend, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE application_name = $1", watchOf(node))
	if dead, _ := node.deaths.Arguments(); len(dead) != 0 {
		t.Errorf("deaths that the node has not recorded: %v, want none", dead)
	}
}
