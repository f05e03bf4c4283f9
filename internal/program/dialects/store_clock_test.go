package dialects

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// recorder is a connector of a driver that records the parameters of all statements.
type recorder struct {
	driver driver.Driver
	source string

	mu   sync.Mutex
	args []driver.Value
}

func (r *recorder) Driver() driver.Driver { return r.driver }

func (r *recorder) Connect(context.Context) (driver.Conn, error) {
	conn, err := r.driver.Open(r.source)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn, r}, nil
}

func (r *recorder) record(args []driver.NamedValue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, arg := range args {
		r.args = append(r.args, arg.Value)
	}
}

type recordedConn struct {
	driver.Conn
	recorder *recorder
}

func (c recordedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c recordedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.recorder.record(args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c recordedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.recorder.record(args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// No statement has a time as a parameter, so the application's clock has no effect.
func TestStoreSendsNoTime(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			source := k.source(t)
			if k.driver == "mysql" {
				source += "?interpolateParams=true" // or the driver prepares statements
			}
			plain := k.connect(t, source)
			recorder := &recorder{driver: plain.Driver(), source: source}
			db := sql.OpenDB(recorder)
			defer db.Close()
			elections := newStore(t, k, db, time.Hour)
			a, b := uuid.New(), uuid.New()
			for _, candidate := range []uuid.UUID{a, b, a} {
				if _, err := elections.ElectAll(t.Context(), candidate, []string{"n", "m"}); err != nil {
					t.Fatal(err)
				}
				if _, err := elections.IsLeader(t.Context(), "n", candidate); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := elections.Candidates(t.Context(), "n"); err != nil {
				t.Fatal(err)
			}
			if err := elections.Unregister(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			known := map[string]bool{
				"n": true, "m": true, a.String(): true, b.String(): true, "tenure migrates tenure_": true,
				"tenure_election_candidate": true, "tenure_election_leader": true,
				`"public"."tenure_election_candidate"`: true, `"public"."tenure_election_leader"`: true,
			}
			recorder.mu.Lock()
			defer recorder.mu.Unlock()
			for _, arg := range recorder.args {
				text, isText := arg.(string)
				limit := isText && strings.HasSuffix(text, "ms") || arg == int64(9) // of a transaction
				if !known[text] && !limit {
					t.Errorf("a statement was given %v (%T)", arg, arg)
				}
			}
			if len(recorder.args) < 20 {
				t.Errorf("only %d parameters were recorded", len(recorder.args))
			}
		})
	}
}

// Connections whose time zones are a day apart agree on the end of a lease.
func TestStoreTimeZonesDoNotMatter(t *testing.T) {
	t.Parallel()
	zones := map[string][]string{
		"PostgreSQL": {"&timezone=Pacific/Kiritimati", "&timezone=Pacific/Pago_Pago"},
		"MariaDB":    {"?time_zone=%27%2B13%3A00%27", "?time_zone=%27-11%3A00%27"},
	}
	for _, k := range kinds {
		if zones[k.name] == nil {
			continue // it has no time zone, or not one for a session
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			source := k.source(t)
			east := newStore(t, k, k.connect(t, source+zones[k.name][0]), time.Minute)
			west := newStore(t, k, k.connect(t, source+zones[k.name][1]), time.Minute)
			a, b := uuid.New(), uuid.New()
			led, err := east.Elect(t.Context(), "n", a)
			if err != nil {
				t.Fatal(err)
			}
			held, err := west.Elect(t.Context(), "n", b)
			if err != nil || held.Holder != a || !held.ExpiresAt.Equal(led.ExpiresAt) {
				t.Errorf("got %+v, %v; want %+v", held, err, led)
			}
			if until := time.Until(held.ExpiresAt); until <= 0 || until > time.Minute {
				t.Errorf("the lease runs for %v more by the local clock, on the same machine", until)
			}
		})
	}
}

// A short window is exact, even in tables that had whole seconds.
func TestStoreKeepsShortWindow(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		for _, own := range []bool{true, false} {
			name := k.name
			if !own {
				name += " in the library's tables"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := k.open(t)
				if !own {
					execute(t, db, libraryTables(k.dialect)...)
				}
				const window = 250 * time.Millisecond
				elections := newStore(t, k, db, window)
				for range 30 {
					a := uuid.New()
					begun := time.Now()
					held, err := elections.Elect(t.Context(), "n", a)
					took := time.Since(begun) // so much at most is lost on the way
					if err != nil || held.Holder != a {
						t.Fatalf("got %+v, %v", held, err)
					}
					if held.ValidFor < window-took-window/4 || held.ValidFor > window {
						t.Errorf("ValidFor is %v after %v", held.ValidFor, took)
					}
					// What the row holds, as the server reckons: it is asked later.
					asked := time.Now()
					remaining, err := time.ParseDuration(value(t, db, remainingQuery[k.name]) + "us")
					if err != nil {
						t.Fatal(err)
					}
					answered := time.Now()
					if promised := held.ReadAt.Add(held.ValidFor); promised.After(answered.Add(remaining)) {
						t.Errorf("promised for %v longer than the row holds", promised.Sub(answered.Add(remaining)))
					} else if lost := asked.Add(remaining).Sub(promised); lost > took+window/4 {
						t.Errorf("promised %v less than the row holds, after %v", lost, took)
					}
					if err := elections.Unregister(t.Context(), "n", a); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// remainingQuery returns the remaining time of the lease in microseconds, independently of
// the store's own query.
var remainingQuery = map[string]string{
	"PostgreSQL": "SELECT CAST(1e6 * extract(epoch FROM lease_expires_at - clock_timestamp()) AS bigint) FROM tenure_election_leader",
	"SQLite":     "SELECT CAST((julianday(lease_expires_at) - julianday('now')) * 86400e6 AS INTEGER) FROM tenure_election_leader",
	"MariaDB":    "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_expires_at) FROM tenure_election_leader",
}

// SQLite compares times as text, so the form must be the same.
func TestStoreWritesTimesLikeTheLibrary(t *testing.T) {
	t.Parallel()
	k := direct[1]
	db := k.open(t)
	execute(t, db, libraryTables(k.dialect)...)
	if _, err := newStore(t, k, db, time.Hour).Elect(t.Context(), "n", uuid.New()); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{
		"lease_expires_at FROM tenure_election_leader", "updated_at FROM tenure_election_leader",
		"last_heartbeat_at FROM tenure_election_candidate", "expires_at FROM tenure_election_candidate",
	} {
		// Not the column itself: the driver would make a time of it.
		text := value(t, db, "SELECT '' || "+column)
		if at, err := time.Parse("2006-01-02 15:04:05.000000", text); err != nil || len(text) != 26 || time.Since(at).Abs() > 2*time.Hour {
			t.Errorf("%s: %q, %v", column, text, err)
		}
	}
}
