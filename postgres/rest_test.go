package postgres

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// waitOf returns the number of the session for whose end a node's watch waits, when that
// attempt began, and for how long it has lasted; 0 between two attempts.
func waitOf(t *testing.T, conn *pgx.Conn, p *peer) (session int32, began time.Time, lasted time.Duration) {
	t.Helper()
	var ms float64
	err := conn.QueryRow(t.Context(), `
		SELECT l.objid::bigint::int, l.waitstart, 1000 * extract(epoch FROM clock_timestamp() - l.waitstart)::double precision
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE a.application_name = $1 AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = $2::bigint::oid
			AND NOT l.granted AND l.waitstart IS NOT NULL`,
		watchOf(p), uint32(p.space)).Scan(&session, &began, &ms)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return session, began, link.FromMilliseconds(ms)
}

// awaitAttempt waits for an attempt of a node's watch that is true of.
func awaitAttempt(t *testing.T, p *peer, what string, is func(session int32, began time.Time, lasted time.Duration) bool) (began time.Time) {
	t.Helper()
	conn := pgtest.Conn(t, p.backend.connect.Config.ConnString())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		if session, began, lasted := waitOf(t, conn, p); session != 0 && is(session, began, lasted) {
			return began
		}
		if time.Now().After(end) {
			t.Fatalf("the watch made no attempt %s", what)
		}
	}
}

// aged makes nodes as old as nodes at rest.
func aged(t *testing.T, peers ...*peer) {
	t.Helper()
	for _, p := range peers {
		// Set by hand: a node is young for 10 s.
		exec(t, p.backend, "UPDATE {nodes} SET backend_start = backend_start - interval '1 minute' WHERE id = $1", p.id)
	}
	exec(t, peers[0].backend, watchStatements[stmtNext]) // each watch begins a new call
}

// At rest an attempt of a watch costs the server more than anything else that a node does,
// so there must be few.
func TestWatchAtRestMakesLongAttempts(t *testing.T) {
	t.Parallel()
	r := newRing(t, 3)
	aged(t, r.nodes...)
	for i, p := range r.nodes {
		before := r.nodes[(i+2)%3].incarnation
		awaitAttempt(t, p, "of more than 1.5 s for the node before it", func(session int32, _ time.Time, lasted time.Duration) bool {
			return session == before && lasted > 1500*time.Millisecond
		})
	}
}

// The server reports each wait of deadlock_timeout if log_lock_waits is on.
func TestWatchAtRestStaysOutOfTheLog(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"log_lock_waits": "on", "deadlock_timeout": "800ms"}})
	b := backendOn(t, server.DSN(), Config{})
	first, second := open(t, b, lasting), open(t, b, lasting)
	aged(t, first, second)
	for range 2 {
		awaitAttempt(t, second, "of more than 600 ms", func(_ int32, _ time.Time, lasted time.Duration) bool {
			return lasted > 600*time.Millisecond
		})
		last := awaitAttempt(t, second, "", func(int32, time.Time, time.Duration) bool { return true })
		awaitAttempt(t, second, "after that", func(_ int32, began time.Time, _ time.Duration) bool { return began.After(last) })
	}
	if strings.Contains(server.Log(), "still waiting for") {
		t.Error("the server's log reports the wait")
	}
}

// A node draws its number before it joins, so the predecessor of a young node may still
// join. Its watch reads the ring more often than at rest.
func TestWatchOfYoungNodeMakesShortAttempts(t *testing.T) {
	t.Parallel()
	r := newRing(t, 3)
	young := r.nodes[2]
	conn := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var longest time.Duration
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); <-tick.C {
		_, _, lasted := waitOf(t, conn, young)
		longest = max(longest, lasted)
	}
	if longest == 0 || longest > 1500*time.Millisecond {
		t.Errorf("the longest attempt of a young node took %v, want a fifth of its age", longest)
	}
}

// The oldest node watches the youngest: it notices each node that joins, however
// long the attempt in progress would last.
func TestOldestNodeWatchesNodeThatJoins(t *testing.T) {
	t.Parallel()
	r := newRing(t, 2)
	oldest := r.nodes[0]
	aged(t, r.nodes...)
	awaitAttempt(t, oldest, "of more than 1 s", func(_ int32, _ time.Time, lasted time.Duration) bool { return lasted > time.Second })
	awaitAttempt(t, oldest, "that has just begun", func(_ int32, _ time.Time, lasted time.Duration) bool { return lasted < 100*time.Millisecond })
	third := open(t, r.backend, lasting)
	joined := row[time.Time](t, r.backend, "SELECT clock_timestamp() FROM {installation}")
	began := awaitAttempt(t, oldest, "for the node that joined", func(session int32, _ time.Time, _ time.Duration) bool { return session == third.incarnation })
	if after := began.Sub(joined); after > time.Second {
		t.Errorf("the oldest node watches a node %v after it joined, want at most some milliseconds", after)
	}
	if failures := r.backend.Stats().WatchFailures; failures != 0 {
		t.Errorf("%d watch connections failed, want none", failures)
	}
}

// A cancellation can reach the watch function between the blocks that catch it. Then the call
// fails, and the connection stays.
func TestCanceledCallKeepsTheWatch(t *testing.T) {
	t.Parallel()
	r := newRing(t, 2)
	waking := &r.nodes[0].watch.waking
	conn := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	before := r.backend.Stats().WatchCalls
	for end := time.Now().Add(patience); time.Now().Before(end) && r.backend.Stats().WatchCalls < before+5; {
		err := waking.wake(func(pid uint32) error {
			_, err := conn.Exec(t.Context(), "SELECT pg_cancel_backend($1)", int32(pid))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		waking.mu.Lock()
		if !waking.last.IsZero() {
			waking.last = time.Unix(1, 0) // Set by hand: most cancellations are caught, so there must be many.
		}
		waking.mu.Unlock()
	}
	r.settled()
	if failures := r.backend.Stats().WatchFailures; failures != 0 {
		t.Errorf("%d watch connections failed, want none", failures)
	}
}

// A cancellation that is answered late must not reach the next statement of the watch, which
// may record a death. A session that hangs does not delay that.
func TestWatchWaitsForItsCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w watchWaking
		answers := map[uint32]time.Duration{7: 100 * time.Millisecond, 8: time.Hour}
		canceled := 0
		cancel := func(pid uint32) error {
			canceled++
			time.Sleep(answers[pid])
			return nil
		}
		for pid, limit := range map[uint32]time.Duration{7: 100 * time.Millisecond, 8: time.Second} {
			w.begin(pid)
			go func() { _ = w.wake(cancel) }() // exits with the answer
			synctest.Wait()
			if err := w.wake(cancel); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.end()
			if took := time.Since(began); took != limit {
				t.Errorf("the call ended before its cancellation was answered, or too late: after %v, want %v", took, limit)
			}
		}
		if err := w.wake(cancel); err != nil || canceled != 2 {
			t.Errorf("canceled %d calls, want each of two once, and nothing after them (%v)", canceled, err)
		}
		time.Sleep(2 * time.Hour) // the last answer arrives
	})
}
