package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// callsOfWatch notes the periods, in milliseconds, that are sent with the calls of the
// watch function.
type callsOfWatch struct {
	mu      sync.Mutex
	periods []int64
}

// Write is called with messages that are on their way to the server.
func (c *callsOfWatch) Write(sent []byte) (int, error) {
	const header = 5
	for rest := sent; len(rest) > header; {
		end := 1 + int(binary.BigEndian.Uint32(rest[1:header]))
		if end > len(rest) { // the startup message has no type
			break
		}
		var bind pgproto3.Bind
		if rest[0] == 'B' && bind.Decode(rest[header:end]) == nil && bind.PreparedStatement == string(stmtWatch) {
			period := bind.Parameters[4]
			milliseconds, err := strconv.ParseInt(string(period), 10, 64) // of the first call
			if err != nil {
				milliseconds = int64(binary.BigEndian.Uint32(period))
			}
			c.mu.Lock()
			c.periods = append(c.periods, milliseconds)
			c.mu.Unlock()
		}
		rest = rest[end:]
	}
	return len(sent), nil
}

func (c *callsOfWatch) longest() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.periods) == 0 {
		return 0
	}
	return slices.Max(c.periods)
}

// connect is for Config.Connect.
func (c *callsOfWatch) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(r, io.MultiWriter(c, w))
	}
	return pgx.ConnectConfig(ctx, config)
}

// With the default settings, a call of the watch is asked to last for 30 s at most.
func TestWatchAsksForThirtySeconds(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	calls := new(callsOfWatch)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), Connect: calls.connect})
	first := open(t, b)
	open(t, b)
	first.awaitWatcher()
	if got := calls.longest(); got < 29_000 || got > 30_000 {
		t.Errorf("Invariant 6: the longest call of the watch is asked to last for %d ms; want 30000", got)
	}
}

// The real time of TestWatchAsksForThirtySeconds: a watch that nothing wakes holds back
// the horizon for about 30 s with the default settings.
func TestWatchHoldsTheHorizonForThirtySeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	first.drain() // it was alone, and is notified of the other node on its session
	first.awaitWatcher()
	second.awaitWatcher()
	name := watchOf(second)
	conn := pgtest.Conn(t, server.DSN())
	horizon := func() (xmin int64) {
		t.Helper()
		const sql = `SELECT coalesce(min(backend_xmin::text::bigint), 0) FROM pg_stat_activity WHERE application_name = $1`
		if err := conn.QueryRow(t.Context(), sql, name).Scan(&xmin); err != nil {
			t.Fatal(err)
		}
		return xmin
	}
	var (
		tick        = time.NewTicker(100 * time.Millisecond)
		begun       = time.Now()
		held, since = horizon(), time.Now()
		longest     time.Duration
	)
	defer tick.Stop()
	for time.Since(begun) < 64*time.Second && longest < 40*time.Second { // two calls
		<-tick.C
		first.beat() // which makes transaction ids increase
		second.beat()
		if now := horizon(); now != held {
			held, since = now, time.Now()
		}
		if held != 0 {
			longest = max(longest, time.Since(since))
		}
	}
	t.Logf("the watch held back the horizon for %v at most", longest.Round(100*time.Millisecond))
	if longest < 25*time.Second || longest > 33*time.Second {
		t.Errorf("Invariant 6: the watch held back the horizon for %v; want about 30s", longest.Round(100*time.Millisecond))
	}
}

// A call of the watch begins no wait beyond its end: the client closes a connection whose
// call lasts 2 s longer, and the answer of a far server takes a part of that.
func TestCallOfTheWatchEndsInTime(t *testing.T) {
	t.Parallel()
	const limit = 1200 * time.Millisecond // an attempt lasts 2 s
	r := newRing(t, 2)
	aged(t, r.nodes...)
	conn := pgtest.Conn(t, r.backend.connect.Config.ConnString())
	seen := row[int64](t, r.backend, "SELECT last_value FROM {membership}")
	var event string
	var began, ended time.Time
	err := conn.QueryRow(t.Context(), r.backend.names.SQL("SELECT event, statement_timestamp(), clock_timestamp() FROM {watch}($1, 0, $2, $3, $4, 1000)"),
		r.nodes[1].incarnation, r.nodes[1].space, seen, limit.Milliseconds()).Scan(&event, &began, &ended)
	if err != nil {
		t.Fatal(err)
	}
	if took := ended.Sub(began); event != "timeout" || took < limit || took > limit+limit/3 {
		t.Errorf("%q after %v, want a timeout after %v", event, took, limit)
	}
}
