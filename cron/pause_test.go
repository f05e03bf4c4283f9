package cron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A schedule is paused while the leader starts a run that waited: the pause returns after
// the start, and never before it.
func TestPauseWaitsForAStartInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.node("a", tenure.Config{Lease: time.Minute}), cron.Config{}, cron.Schedule{
		Name: "reports", Expression: never, Overlap: cron.OverlapQueue, Job: nothing,
	})
	w.await("the schedule", func() bool { return one[int](w, `SELECT count(*) FROM {schedules} WHERE term > 0`) == 1 })
	if err := w.management.Pause(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO {runs} (schedule, scheduled_for, state) VALUES ('reports', now(), 'waiting')`)
	run := one[int64](w, `SELECT id FROM {runs}`)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := tx.Conn().PgConn().PID()
	if _, err := tx.Exec(t.Context(), pgtest.SQL(w.backend, "SELECT FROM {runs} WHERE id = $1 FOR UPDATE"), run); err != nil {
		t.Fatal(err)
	}
	if err := w.management.Resume(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	var start uint32
	w.await("the start in flight", func() bool {
		start = one[uint32](w, `SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(pid))
		return start != 0
	})
	paused := make(chan error, 1)
	go func() { paused <- w.management.Pause(t.Context(), "reports", "test") }()
	w.await("that the pause returns or waits", func() bool {
		return len(paused) > 0 || one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(start)) > 0
	})
	early := len(paused) > 0
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("the end of the run", func() bool { return w.state(run) == cron.Succeeded })
	if err := <-paused; err != nil || early {
		t.Errorf("the pause returned before the start in flight (%v), with the error %v", early, err)
	}
}
