package cron_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// BenchmarkTicks measures how many ticks a second are claimed, run and recorded,
// of schedules that run one tick at a time and of such that allow overlaps.
func BenchmarkTicks(b *testing.B) {
	for _, overlap := range []cron.Overlap{cron.OverlapQueue, cron.OverlapAllow} {
		for _, schedules := range []int{1, 50} {
			b.Run(fmt.Sprintf("%s/%d schedules", overlap, schedules), func(b *testing.B) { benchmarkTicks(b, overlap, schedules) })
		}
	}
}

func benchmarkTicks(b *testing.B, overlap cron.Overlap, schedules int) {
	i := postgrestest.New(b, "schedules")
	backend, pool := i.Backend, i.Pool
	node := i.Node("a", tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	scheduler, err := cron.New(node, pool, cron.Config{Role: tenure.NamedRole("scheduler"), Grace: 1_000_000 * time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	each := (b.N + schedules - 1) / schedules
	ran := make(chan struct{}, 1000)
	for i := range schedules {
		schedule := cron.Schedule{
			Name: fmt.Sprint(i), Expression: "@every 1h", Overlap: overlap, CatchUpLimit: 100_000,
			Job: func(context.Context, cron.Run) error { ran <- struct{}{}; return nil },
		}
		if err := scheduler.Add(schedule); err != nil {
			b.Fatal(err)
		}
		if _, err := pool.Exec(b.Context(), pgtest.SQL(backend, `
			INSERT INTO {schedules} (name, role, expression, timezone, handled_until)
			VALUES ($1, 'scheduler', $2, 'UTC', date_trunc('hour', clock_timestamp()) - $3 * interval '1 hour')`),
			schedule.Name, schedule.Expression, each); err != nil {
			b.Fatal(err)
		}
	}
	stop := postgrestest.Run(b, scheduler.Run)
	<-ran // the election is over
	b.ResetTimer()
	for range each*schedules - 1 {
		<-ran
	}
	stop()
	b.ReportMetric(float64(each*schedules)/b.Elapsed().Seconds(), "ticks/s")
}
