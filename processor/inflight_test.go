package processor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
)

// flight is a world whose processors work through a network that loses requests
// to cancel, with one commit that is held on the server.
type flight struct {
	*world
	proxy *faultwire.Proxy
	pool  *pgxpool.Pool // through the proxy
	admin *pgx.Conn
	dsn   string
	hold  func() // holds commits from now on
	free  func() // lets them continue
	held  string // a query for the PID of the backend whose commit is held
}

func newFlight(t *testing.T, server *pgtest.Server, parameters string) *flight {
	t.Helper()
	f := &flight{world: newWorldOn(t, server), admin: server.Conn(t), dsn: server.DSN()}
	var err error
	f.proxy, err = faultwire.Start(net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	f.must(err)
	t.Cleanup(func() {
		if err := f.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	f.proxy.LoseCancelRequests()
	dsn, err := f.proxy.DSN(server.DSN())
	f.must(err)
	f.pool = pgtest.Pool(t, dsn+parameters)
	return f
}

// holdByTrigger holds the commits of transactions that wrote to a table, by a
// deferred trigger that waits for a lock.
func (f *flight) holdByTrigger(table string) {
	f.Helper()
	key := int64(f.admin.PgConn().PID())
	f.Exec("CREATE FUNCTION " + pgx.Identifier{f.Schema, "linger"}.Sanitize() + `() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4711, ` + fmt.Sprint(key) + `);
    RETURN NULL;
END $$`)
	f.Exec("CREATE CONSTRAINT TRIGGER linger AFTER INSERT OR UPDATE OR DELETE ON " + table +
		" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + pgx.Identifier{f.Schema, "linger"}.Sanitize() + "()")
	ask := func(sql string) func() {
		return func() {
			f.Helper()
			_, err := f.admin.Exec(f.Context(), sql, key)
			f.must(err)
		}
	}
	f.hold, f.free = ask("SELECT pg_advisory_lock(4711, $1)"), ask("SELECT pg_advisory_unlock(4711, $1)")
	f.held = fmt.Sprintf("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (4711, %d) AND NOT granted", key)
}

// holdByStandby holds all commits: the standby that they wait for is not there.
func (f *flight) holdByStandby() {
	set := func(names string) func() {
		return func() {
			f.Helper()
			_, err := f.admin.Exec(f.Context(), "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
			f.must(err)
			_, err = f.admin.Exec(f.Context(), "SELECT pg_reload_conf()")
			f.must(err)
		}
	}
	hold, free := set("absent"), set("")
	probe, probed, enough := pgtest.Conn(f, f.dsn), make(chan error, 1), make(chan struct{})
	const holds = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep')"
	f.hold = func() {
		f.Helper()
		hold()
		go func() {
			for {
				_, err := probe.Exec(f.Context(), "COMMENT ON TABLE "+f.filled+" IS 'held'")
				select {
				case <-enough:
					probed <- err
					return
				default:
				}
				if err != nil {
					probed <- err
					return
				}
			}
		}()
		f.Await("the setting to hold commits", func() (held bool) {
			f.must(f.admin.QueryRow(f.Context(), holds, int32(probe.PgConn().PID())).Scan(&held))
			return held
		})
	}
	f.free = func() {
		f.Helper()
		close(enough)
		free()
		f.must(<-probed)
	}
	f.held = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ILIKE 'commit%'"
}

// cutHeld cuts the connection whose commit is held, when there is one.
func (f *flight) cutHeld() (pid uint32) {
	f.Helper()
	cut := false
	f.Await("a commit that is held", func() bool {
		rows, err := f.admin.Query(f.Context(), f.held)
		f.must(err)
		pids, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
		f.must(err)
		for _, conn := range f.proxy.Connections() {
			if slices.Contains(pids, conn.PID()) {
				pid = conn.PID()
				conn.Cut(faultwire.ToClient) // the server is not notified
				cut = true
			}
		}
		return cut
	})
	return pid
}

// blocks reports whether another backend waits for a lock of a backend.
func (f *flight) blocks(pid uint32) (blocks bool) {
	f.Helper()
	f.must(f.admin.QueryRow(f.Context(),
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", int32(pid)).Scan(&blocks))
	return blocks
}

// The server still runs a batch's commit when its connection breaks and the
// cancel request is lost. Its outcome counts, whatever it is, before anything
// is read or handled again.
func TestOutcomeOfCommitInFlightIsAwaited(t *testing.T) {
	t.Parallel()
	shared := func(t *testing.T) *pgtest.Server { return pgtest.Shared(t) }
	own := func(t *testing.T) *pgtest.Server { return pgtest.Start(t, pgtest.Options{Fresh: true}) }
	trigger := func(f *flight) { f.holdByTrigger(f.filled) }
	for name, c := range map[string]struct {
		server     func(t *testing.T) *pgtest.Server
		hold       func(*flight)
		parameters string
		undone     bool // the server ends the backend before it has committed
	}{
		"a deferred trigger":                     {server: shared, hold: trigger},
		"a deferred trigger that is ended":       {server: shared, hold: trigger, undone: true},
		"a deferred trigger, in repeatable read": {server: shared, hold: trigger, parameters: "&default_transaction_isolation=repeatable%20read"},
		"a deferred trigger, in serializable":    {server: shared, hold: trigger, parameters: "&default_transaction_isolation=serializable"},
		"a synchronous standby that stalls":      {server: own, hold: (*flight).holdByStandby},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlight(t, c.server(t), c.parameters)
			c.hold(f)
			node := f.Node("a", tenure.Config{Lease: time.Minute})
			var calls atomic.Int64
			entered, held := make(chan struct{}), make(chan struct{})
			f.append(1, 2, 3, 4, 5)
			freed := false
			free := func() {
				if !freed {
					freed = true
					f.free()
				}
			}
			f.groupIn(f.pool, node, processor.Config{
				Name: "counts", BatchSize: 2, PollInterval: 10 * time.Millisecond,
				Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					if calls.Add(1) == 1 {
						close(entered)
						<-held
					}
					return f.fill(ctx, tx, batch)
				},
			})
			<-entered
			defer free()
			func() {
				defer close(held)
				f.hold()
			}()
			pid := f.cutHeld()
			f.Await("a session to wait for the outcome", func() bool { return f.blocks(pid) })
			if n := calls.Load(); n != 1 {
				t.Errorf("the handler was called %d times while the first commit was in flight", n)
			}
			if c.undone {
				pgtest.Exec(t, f.admin, "SELECT pg_terminate_backend($1)", int32(pid))
			}
			free()
			f.Await("all events", func() bool { return len(f.numbers()) >= 5 && f.show("counts").Processed >= 5 })
			if got := f.numbers(); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
				t.Errorf("handled %v", got)
			}
			if s := f.show("counts"); s.Processed != 5 || s.Errors != 0 {
				t.Errorf("%d events were counted, with %d errors: %s", s.Processed, s.Errors, s.LastError)
			}
		})
	}
}

// The connection breaks while the progress of a publisher is being saved.
// Within the term nothing is published twice, and everything is counted once.
func TestProgressInFlightIsCountedOnce(t *testing.T) {
	t.Parallel()
	f := newFlight(t, pgtest.Shared(t), "")
	f.holdByTrigger(pgtest.SQL(f.backend, "{processors}"))
	var mu sync.Mutex
	var published []string
	var begun atomic.Bool
	first := make(chan struct{})
	f.groupIn(f.pool, f.Node("a", tenure.Config{Lease: time.Minute}), processor.Config{
		Name: "sends", BatchSize: 2, PollInterval: 10 * time.Millisecond, ProgressInterval: time.Nanosecond,
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			if begun.CompareAndSwap(false, true) {
				<-first
			}
			mu.Lock()
			defer mu.Unlock()
			for _, event := range batch {
				published = append(published, string(event.Data))
			}
			return len(batch), nil
		},
	})
	f.append(1, 2, 3, 4, 5)
	f.Await("the first batch", begun.Load)
	f.hold()
	close(first)
	pid := f.cutHeld()
	f.Await("a session to wait for the outcome", func() bool { return f.blocks(pid) })
	f.free()
	f.Await("all events", func() bool { return f.show("sends").Processed >= 5 })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(published, []string{"1", "2", "3", "4", "5"}) || f.show("sends").Processed != 5 {
		t.Errorf("published %v, %d events were counted", published, f.show("sends").Processed)
	}
}

// The connection breaks during a replay's commit.
func TestReplayInFlightIsCountedOnce(t *testing.T) {
	t.Parallel()
	f := newFlight(t, pgtest.Shared(t), "")
	f.holdByTrigger(f.filled)
	var mended atomic.Bool
	f.groupIn(f.pool, f.Node("a", tenure.Config{Lease: time.Minute}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if !mended.Load() {
				return errors.Join(processor.ErrPoison, errors.New("not yet"))
			}
			return f.fill(ctx, tx, batch)
		},
	})
	f.append(1)
	f.Await("the dead letter", func() bool { return f.show("counts").DeadLetters == 1 })
	mended.Store(true)
	f.hold()
	_, err := f.management().Replay(t.Context(), "counts", nil, "ann")
	f.must(err)
	pid := f.cutHeld()
	f.Await("a session to wait for the outcome", func() bool { return f.blocks(pid) })
	f.free()
	f.append(2)
	f.Await("both events", func() bool { return slices.Contains(f.numbers(), 2) })
	if got := f.numbers(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("handled %v", got)
	}
}
