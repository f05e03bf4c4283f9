package cron_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The connection breaks during the commit that starts a run. Ticks that become
// due in the meantime do not run in parallel.
func TestStartInFlightBlocksLaterTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy, err := faultwire.Start(net.JoinHostPort(w.Server.Host, strconv.Itoa(w.Server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	proxy.LoseCancelRequests()
	dsn, err := proxy.DSN(w.Server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	admin := w.Server.Conn(t)
	key := int32(admin.PgConn().PID())
	linger := pgx.Identifier{w.Schema, "linger"}.Sanitize() + "()"
	w.Exec("CREATE FUNCTION " + linger + ` RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4712, ` + fmt.Sprint(key) + `);
    RETURN NULL;
END $$`)
	w.Exec("CREATE CONSTRAINT TRIGGER linger AFTER UPDATE ON {runs} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW " +
		"WHEN (NEW.manual AND NEW.state = 'running') EXECUTE FUNCTION " + linger)
	ask := func(sql string, args ...any) (answer int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), sql, args...).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}

	var mu sync.Mutex
	running, most, manual, ticks := 0, 0, 0, 0
	end := make(chan struct{})
	stopped := sync.OnceFunc(func() { close(end) })
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), pgtest.Pool(t, dsn), cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Add(cron.Schedule{
		Name: "reports", Expression: "@every 1s", Overlap: cron.OverlapQueue, Job: func(_ context.Context, run cron.Run) error {
			mu.Lock()
			running++
			most = max(most, running)
			if run.Manual {
				manual++
			} else {
				ticks++
			}
			mu.Unlock()
			<-end
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.known(0, cron.Schedule{Name: "reports", Expression: "@every 1s"})
	if err := w.management.Pause(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx) }()
	defer func() {
		stopped()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	ask("SELECT 1 FROM pg_advisory_lock(4712, $1)", key)
	if _, err := w.management.Trigger(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	var held int
	w.Await("the start in flight", func() bool {
		held = ask("SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND classid = 4712 AND objid = $1 AND NOT granted", key)
		for _, conn := range proxy.Connections() {
			if held > 0 && int(conn.PID()) == held {
				conn.Cut(faultwire.ToClient)
				return true
			}
		}
		return false
	})
	resumed := make(chan error, 1)
	go func() { resumed <- w.management.Resume(t.Context(), "reports", "test") }()
	w.Await("a tick, or that the scheduler also waits for the outcome", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ticks > 0 || ask(`
			WITH RECURSIVE waiting AS (
				SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))
				UNION
				SELECT a.pid FROM pg_stat_activity a JOIN waiting w ON w.pid = ANY (pg_blocking_pids(a.pid))
			)
			SELECT count(*) FROM waiting`, int32(held)) > 1
	})
	ask("SELECT 1 FROM pg_advisory_unlock(4712, $1)", key)
	if err := <-resumed; err != nil {
		t.Fatal(err)
	}
	w.Await("the run that was in flight", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return manual > 0
	})
	stopped()
	w.Await("a tick", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ticks > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if most != 1 || manual != 1 {
		t.Errorf("%d runs at the same time, and the one that was asked for ran %d times", most, manual)
	}
}
