package pgtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// BareLock measures how long PostgreSQL itself takes to pass an advisory lock on: a
// connection waits in pg_advisory_lock for one that another connection holds. A bound
// on speed is judged beside it, in the same run, since a loaded machine slows both.
type BareLock struct {
	t      testing.TB
	server *Server
	key    int64
	holder *pgx.Conn
}

// Handover is how the holder of a lock gives it up.
type Handover bool

// The ways to give a lock up.
const (
	ByUnlock Handover = false // a statement
	ByCrash  Handover = true  // the end of its connection
)

// bareRounds is how many figures a median is made of.
const bareRounds = 5

// NewBareLock locks a key on the server.
func (s *Server) NewBareLock(t testing.TB) *BareLock {
	t.Helper()
	b := &BareLock{t: t, server: s, key: time.Now().UnixNano(), holder: s.Conn(t)}
	b.exec(b.holder, "SELECT pg_advisory_lock($1)", b.key)
	return b
}

func (b *BareLock) exec(conn *pgx.Conn, sql string, args ...any) {
	b.t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// Pass makes the holder give the lock up and returns how long it took until the other
// connection had it.
func (b *BareLock) Pass(how Handover) time.Duration {
	b.t.Helper()
	next := b.server.Conn(b.t)
	granted := make(chan time.Time, 1)
	go func() { // ends when the lock is granted or the connection is closed with the test
		if _, err := next.Exec(context.Background(), "SELECT pg_advisory_lock($1)", b.key); err == nil {
			granted <- time.Now()
		}
	}()
	b.awaitWaiting(next)
	released := time.Now()
	if how == ByCrash {
		_ = b.holder.PgConn().Conn().Close()
	} else {
		b.exec(b.holder, "SELECT pg_advisory_unlock($1)", b.key)
	}
	b.holder = next
	select {
	case at := <-granted:
		return at.Sub(released)
	case <-time.After(timeout):
		b.t.Fatal("the bare lock was not granted")
		panic("unreachable")
	}
}

// awaitWaiting waits until the connection waits for the lock.
func (b *BareLock) awaitWaiting(conn *pgx.Conn) {
	b.t.Helper()
	Await(b.t, timeout, b.server.Conn(b.t), "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)", int32(conn.PgConn().PID()))
}

// JudgeSpeed fails the test if what it measures takes longer than passing the bare lock
// on allows: the median of some rounds of each, which alternate, is at most 8 times that
// of the bare lock and 80 ms. The rest is for the statements that the lock alone does
// not need.
func (s *Server) JudgeSpeed(t testing.TB, what string, how Handover, measure func() time.Duration) {
	t.Helper()
	lock := s.NewBareLock(t)
	var bare, ours []time.Duration
	for range bareRounds {
		bare = append(bare, lock.Pass(how))
		ours = append(ours, measure())
	}
	got, beside := median(ours), median(bare)
	bound := 8*beside + 80*time.Millisecond
	t.Logf("%s: %v, a bare lock %v (medians of %d)", what, got, beside, bareRounds)
	if got > bound {
		t.Errorf("Invariant 7: %s: took %v; want at most %v, since a bare lock took %v (all: %v)", what, got, bound, beside, ours)
	}
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
