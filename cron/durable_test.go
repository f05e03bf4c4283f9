package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// A job starts when its claim is durable, although the commits of the program's pool are
// not: no tick whose job has started runs again after a crash of the server.
func TestClaimedTickRunsOnceDespiteCrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate("schedules")
	w := &world{i, pgtest.Pool(t, server.DSN()+"&synchronous_commit=off"), cron.NewAdmin(i.Backend, i.Pool)}

	begun := make(chan time.Time)
	job := func(ctx context.Context, run cron.Run) error {
		select {
		case begun <- run.ScheduledFor:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.run(w.Node("a", tenure.Config{}), cron.Config{},
		cron.Schedule{Name: "mail", Expression: "@every 1s", Overlap: cron.OverlapAllow, Policy: cron.AtMostOnce, Job: job})
	runs := map[int64]int{}
	next := func() time.Time {
		t.Helper()
		tick := testkit.Receive(t, begun, patience, "no run began")
		runs[tick.Unix()]++
		return tick
	}
	next()
	crash := server.HoldLog(t)
	held := time.Now()
	claimed := next()
	for claimed.Before(held) { // its claim may have been flushed with others
		claimed = next()
	}
	crash()
	for next().Before(claimed.Add(3 * time.Second)) { // a repeated run begins at least a second earlier
	}
	if n := runs[claimed.Unix()]; n != 1 {
		t.Errorf("the job of the tick %v began %d times; want once", claimed, n)
	}
}
