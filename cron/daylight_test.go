package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// setClock makes the pool see a clock of the database that the test sets: a
// function of the same name comes first in its search path.
func (w *world) setClock(start time.Time) (set func(time.Time)) {
	w.Helper()
	w.Exec(`CREATE TABLE {schema}.clock AS SELECT $1::timestamptz AS shows`, start)
	w.Exec(`
		CREATE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
		AS 'SELECT shows FROM {schema}.clock'`)
	config, err := pgxpool.ParseConfig(w.Server.DSN())
	if err != nil {
		w.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = `"` + w.Schema + `", pg_catalog`
	pool, err := pgxpool.NewWithConfig(w.Context(), config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(pool.Close)
	w.pool, w.Pool = pool, pool
	w.management = cron.NewAdmin(w.Backend, pool)
	return func(to time.Time) { w.Exec(`UPDATE {schema}.clock SET shows = $1`, to) }
}

// On the days of 2026 on which New York changes its clocks, fixed local times
// run once each, and hourly schedules run every hour.
func TestScheduleRunsOnceAcrossClockChanges(t *testing.T) {
	t.Parallel()
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for name, day := range map[string]struct {
		from time.Time
		half map[string][]int // the runs after each half hour
	}{
		"spring": {from: time.Date(2026, 3, 8, 0, 5, 0, 0, newYork), half: map[string][]int{
			// 0:05 … 1:35 (4), 3:05 (5), 3:35 (6)
			"at 1:30":     {0, 0, 0, 1, 1, 1, 1},
			"at 2:30":     {0, 0, 0, 0, 1, 1, 1},
			"at 3:30":     {0, 0, 0, 0, 0, 1, 1},
			"hourly":      {0, 0, 1, 1, 2, 2, 3},
			"every 30min": {0, 1, 2, 3, 4, 5, 6},
		}},
		"autumn": {from: time.Date(2026, 11, 1, 0, 5, 0, 0, newYork), half: map[string][]int{
			// 0:05, 0:35, 1:05, 1:35, then 1:05 and 1:35 again, 2:05
			"at 1:30":     {0, 0, 0, 1, 1, 1, 1},
			"at 2:30":     {0, 0, 0, 0, 0, 0, 0},
			"hourly":      {0, 0, 1, 1, 2, 2, 3},
			"every 30min": {0, 1, 2, 3, 4, 5, 6},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := w.setClock(day.from)
			expressions := map[string]string{
				"at 1:30": "30 1 * * *", "at 2:30": "30 2 * * *", "at 3:30": "30 3 * * *", "hourly": "0 * * * *", "every 30min": "@every 30m",
			}
			var schedules []cron.Schedule
			for name, expression := range expressions {
				schedules = append(schedules, cron.Schedule{
					Name: name, Expression: expression, Zone: "America/New_York", Overlap: cron.OverlapQueue, CatchUp: cron.CatchUpAll,
					Job: func(context.Context, cron.Run) error { return nil },
				})
			}
			w.known(0, schedules...)
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 20 * time.Millisecond}, schedules...)
			for halves := range 7 {
				set(day.from.Add(time.Duration(halves) * 30 * time.Minute))
				for name, want := range day.half {
					w.Await(name, func() bool { return w.states(name)[cron.Succeeded] >= want[halves] })
				}
				for name, want := range day.half {
					if got := w.states(name); got[cron.Succeeded] != want[halves] || len(got) > 1 {
						t.Errorf("%d half hours after %v the schedule %q has runs %v; want %d", halves, day.from, name, got, want[halves])
					}
				}
			}
			if n := one[int](w, `SELECT count(*) FROM {runs} WHERE started_at < scheduled_for`); n != 0 {
				t.Errorf("%d runs began early", n)
			}
		})
	}
}
