package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// fillOld writes old rows after the present ones: n of each kind, and a tenth of the terms.
//
// Set by hand: rows become old in 90 days.
func (s world) fillOld(n int) {
	s.Helper()
	for _, sql := range []string{
		`INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'old', n, gen_random_uuid(), 'old', 1, at, at, 'resigned' FROM generate_series(1, $1::int / 10) n, LATERAL (SELECT now() - interval '100 days' + n * interval '1 second' AS at) t`,
		`INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
SELECT now() - interval '100 days' + n * interval '1 second', gen_random_uuid(), 'old', 1, 'left', 'active' FROM generate_series(1, $1::int) n`,
		`INSERT INTO {runs} (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT 'old', at, 'succeeded', at, at, at FROM generate_series(1, $1::int) n, LATERAL (SELECT now() - interval '100 days' + n * interval '1 second' AS at) t`,
		`INSERT INTO {changes} (at, changed_by, kind, name, action)
SELECT now() - interval '100 days' + n * interval '1 second', 'old', 'schedule', 'old', 'pause' FROM generate_series(1, $1::int) n`,
		`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, failed_at, replayed_at)
SELECT 'old', '1', n, 'refused', 1, 1, at, at FROM generate_series(1, $1::int) n, LATERAL (SELECT now() - interval '100 days' + n * interval '1 second' AS at) t`,
	} {
		s.Exec(sql, n)
	}
}

// kept are the rows of each kind that fillOld writes.
var kept = []struct{ what, sql string }{
	{"runs", `SELECT count(*) FROM {runs} WHERE schedule = 'old'`},
	{"changes of nodes", `SELECT count(*) FROM {node_history} WHERE node_name = 'old'`},
	{"changes by hand", `SELECT count(*) FROM {changes} WHERE changed_by = 'old'`},
	{"terms", `SELECT count(*) FROM {history} WHERE role = 'old'`},
	{"dead letters", `SELECT count(*) FROM {dead_letters} WHERE processor = 'old'`},
}

// awaitRemoved waits until no old row is left.
func (s world) awaitRemoved() {
	s.Helper()
	for _, k := range kept {
		s.Await("an hour before the next search, no old row is left: "+k.what, func() bool { return s.count(k.sql) == 0 })
	}
}

// A young row, one with a time in the future, and a backfilled run of an old tick, all
// with lower ids than old rows, keep no old row from being removed. All of them stay.
func TestYoungRowsHoldNothingBack(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t, "schedules", "changes", "processors")
	s := world{i, i.Node("a", tenure.Config{})}
	ran := make(chan cron.Run, 10)
	scheduler, err := cron.New(s.node, s.Pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Add(cron.Schedule{Name: "daily", Expression: "@daily", Job: func(_ context.Context, run cron.Run) error { ran <- run; return nil }}); err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, scheduler.Run)
	s.Await("the schedule has a row", func() bool { return s.count(`SELECT count(*) FROM {schedules}`) == 1 })
	ago := func(days int) time.Time { return time.Now().Add(-time.Duration(days) * 24 * time.Hour) }
	if filled, err := cron.NewAdmin(s.Backend, s.Pool).Backfill(t.Context(), "daily", ago(101), ago(100), "ann"); err != nil || filled.Runs != 1 {
		t.Fatalf("the backfill is %+v, %v; want one run", filled, err)
	}
	<-ran
	s.Await("the run has ended", func() bool {
		return s.count(`SELECT count(*) FROM {runs} WHERE schedule = 'daily' AND state = 'succeeded'`) == 1
	})
	stop()
	// Set by hand: times of a clock that was ahead by a year, and a dead letter of a year ago.
	s.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state, claimed_at, ended_at) SELECT 'ahead', at, 'succeeded', at, at FROM (SELECT now() + interval '1 year' AS at) t`)
	s.Exec(`INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous) VALUES (now() + interval '1 year', gen_random_uuid(), 'ahead', 1, 'left', 'active')`)
	s.Exec(`INSERT INTO {changes} (at, changed_by, kind, name, action) VALUES (now() + interval '1 year', 'ahead', 'schedule', 'ahead', 'pause')`)
	s.Exec(`INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason) VALUES ('ahead', 1, gen_random_uuid(), 'a', 1, now(), now() + interval '1 year', 'resigned')`)
	s.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, dismissed_at) VALUES ('ahead', '1', 1, '', 1, 1, now() + interval '1 year')`)
	s.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, failed_at) VALUES ('open', '1', 1, '', 1, 1, now() - interval '1 year')`)
	s.fillOld(1000)

	compactor, err := retention.New(s.node, s.Pool, retention.Config{BatchSize: 100, Role: tenure.NamedRole("compactor")})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, compactor.Run)
	s.awaitRemoved()
	for _, k := range kept {
		s.Await("the search has ended: "+k.what, func() bool { return !s.stateOf(k.what).SweptAt.IsZero() })
	}
	for what, sql := range map[string]string{
		"backfilled run":           `SELECT count(*) FROM {runs} WHERE schedule = 'daily'`,
		"run of the future":        `SELECT count(*) FROM {runs} WHERE schedule = 'ahead'`,
		"node of the future":       `SELECT count(*) FROM {node_history} WHERE node_name = 'ahead'`,
		"change of the future":     `SELECT count(*) FROM {changes} WHERE changed_by = 'ahead'`,
		"term of the future":       `SELECT count(*) FROM {history} WHERE role = 'ahead'`,
		"dismissal of the future":  `SELECT count(*) FROM {dead_letters} WHERE processor = 'ahead'`,
		"open dead letter, though": `SELECT count(*) FROM {dead_letters} WHERE processor = 'open'`,
	} {
		if n := s.count(sql); n != 1 {
			t.Errorf("%s: %d rows are kept; want 1", what, n)
		}
	}
}
