package retention_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// A compactor with the default batches removes more than 100 rows a second among many,
// while a long transaction keeps the server from removing the dead rows and a program
// writes runs. No write waits for it for long, and it locks no table.
func TestRetentionKeepsUpAmongManyRows(t *testing.T) {
	pgtest.Long(t)
	const (
		kept     = 300_000
		old      = 60_000 // ten minutes of 100 rows a second
		mostWait = 2 * time.Second
	)
	i := postgrestest.New(t, "schedules", "changes", "processors")
	s := world{i, i.Node("a", tenure.Config{})}
	// Set by hand: rows of 90 days, for their number.
	const insert = `
INSERT INTO {runs} (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT $1, at, 'succeeded', at, at, at FROM generate_series(1, $2::int) n, LATERAL (SELECT now() - $3::interval - n * interval '1 second' AS at) t`
	s.Exec(insert, "kept", kept, "1 day")
	s.Exec(insert, "old", old, "90 days")
	s.Exec(`ANALYZE {runs}`)
	horizon, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = horizon.Rollback(context.WithoutCancel(t.Context())) }()
	pgtest.Exec(t, horizon, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	compactor, err := retention.New(s.node, s.Pool, retention.Config{Role: tenure.NamedRole("compactor")})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	postgrestest.Run(t, compactor.Run)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var longest time.Duration
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			wrote := time.Now()
			s.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state, ended_at) SELECT 'new', clock_timestamp(), 'succeeded', clock_timestamp()`)
			s.Exec(`UPDATE {runs} SET error = 'x' WHERE schedule = 'kept' AND scheduled_for = (SELECT max(scheduled_for) FROM {runs} WHERE schedule = 'kept')`)
			longest = max(longest, time.Since(wrote))
		}
	})
	left := func() int {
		return s.count(`SELECT count(*) FROM (SELECT FROM {runs} WHERE ended_at < now() - interval '90 days' LIMIT 1) old`)
	}
	deadline := began.Add(old / 100 * time.Second)
	for left() > 0 && time.Now().Before(deadline) {
		if n := s.count(`SELECT count(*) FROM pg_locks l WHERE l.relation = {runs:regclass} AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`); n > 0 {
			t.Errorf("%d locks of the table; want row locks only", n)
		}
		<-time.After(100 * time.Millisecond)
	}
	took := time.Since(began)
	stop()
	writing.Wait()
	rate := old / took.Seconds()
	t.Logf("%.0f rows a second beside %d; a write waited for at most %v", rate, kept, longest)
	if left() > 0 || rate < 100 {
		t.Errorf("%.0f old rows a second are removed; want at least 100", rate)
	}
	if longest > mostWait {
		t.Errorf("a write waited for %v; want at most %v", longest, mostWait)
	}
	if n := s.count(`SELECT sum(succeeded) FROM {run_days}`); n != old {
		t.Errorf("%d runs are in the daily totals; want %d", n, old)
	}
}
