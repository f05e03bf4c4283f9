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
	w.run(w.Node("a", tenure.Config{Lease: time.Minute}), cron.Config{}, cron.Schedule{
		Name: "reports", Expression: never, Overlap: cron.OverlapQueue, Job: nothing,
	})
	w.Await("the schedule", func() bool { return one[int](w, `SELECT count(*) FROM {schedules} WHERE term > 0`) == 1 })
	if err := w.management.Pause(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	w.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state) VALUES ('reports', now(), 'waiting')`)
	run := one[int64](w, `SELECT id FROM {runs}`)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := tx.Conn().PgConn().PID()
	pgtest.Exec(t, tx, pgtest.SQL(w.Backend, "SELECT FROM {runs} WHERE id = $1 FOR UPDATE"), run)
	if err := w.management.Resume(t.Context(), "reports", "test"); err != nil {
		t.Fatal(err)
	}
	var start uint32
	w.Await("the start in flight", func() bool {
		start = one[uint32](w, `SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(pid))
		return start != 0
	})
	paused := make(chan error, 1)
	go func() { paused <- w.management.Pause(t.Context(), "reports", "test") }()
	w.Await("that the pause returns or waits", func() bool {
		return len(paused) > 0 || one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(start)) > 0
	})
	early := len(paused) > 0
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Await("the end of the run", func() bool { return w.state(run) == cron.Succeeded })
	if err := <-paused; err != nil || early {
		t.Errorf("the pause returned before the start in flight (%v), with the error %v", early, err)
	}
}

// Ticks that were due when a schedule was paused, while no node led, are recorded: none
// disappears.
func TestPauseRecordsTicksThatNoLeaderHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schedule := cron.Schedule{Name: "reports", Expression: "@every 1s", Job: nothing}
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule)
	w.Await("a tick", func() bool { return one[int](w, `SELECT count(*) FROM {runs}`) > 0 })
	stop()
	w.Await("ticks without a leader", func() bool {
		return one[bool](w, `SELECT clock_timestamp() > handled_until + interval '3 seconds' FROM {schedules}`)
	})
	w.ok(w.management.Pause(t.Context(), "reports", "ann"))
	handled := one[time.Time](w, `SELECT handled_until FROM {schedules}`)
	w.Await("a tick in the pause", func() bool {
		return one[bool](w, `SELECT clock_timestamp() > handled_until + interval '2 seconds' FROM {schedules}`)
	})
	w.ok(w.management.Resume(t.Context(), "reports", "ann"))
	if n := one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'missed' AND error LIKE 'no leader handled it%'`); n < 3 {
		t.Errorf("%d ticks are recorded as missed before the pause; want at least 3", n)
	}
	if gaps := one[int](w, `
		SELECT count(*) FROM (SELECT scheduled_for - lag(scheduled_for) OVER (ORDER BY scheduled_for) AS step FROM {runs}) r
		WHERE step <> interval '1 second'`); gaps > 0 {
		t.Errorf("%d gaps before the pause; want a row for each tick", gaps)
	}
	if late := one[int](w, `SELECT count(*) FROM {runs} WHERE scheduled_for > $1`, handled); late > 0 {
		t.Errorf("%d ticks of the pause are recorded; want none", late)
	}
}
