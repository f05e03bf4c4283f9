package cron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/postgres"
)

// A job at half past two in Berlin, on one of the nodes that run this program.
func Example() { //nolint:testableexamples // it needs a server and never ends
	ctx := context.Background()
	const dsn = "postgres://localhost/app"
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: "api-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler, err := cron.New(node, pool, cron.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = scheduler.Add(cron.Schedule{
		Name:       "invoices",
		Expression: "30 2 * * *",
		Zone:       "Europe/Berlin",
		CatchUp:    cron.CatchUpLatest,
		Policy:     cron.AtLeastOnce,
		Timeout:    time.Hour,
		Job: func(ctx context.Context, run cron.Run) error {
			return run.InTx(ctx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO invoices (day) VALUES ($1) ON CONFLICT DO NOTHING", run.ScheduledFor)
				return err
			})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scheduler.Run(ctx))
}

// When clocks go forward, 2:30 does not exist: the tick comes immediately after
// the gap.
func ExampleExpression_Next() {
	newYork, err := cron.LoadZone("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	daily, err := cron.Parse("30 2 * * *", newYork)
	if err != nil {
		fmt.Println(err)
		return
	}
	tick := time.Date(2026, 3, 6, 12, 0, 0, 0, newYork)
	for range 3 {
		tick = daily.Next(tick)
		fmt.Println(tick)
	}
	// Output:
	// 2026-03-07 02:30:00 -0500 EST
	// 2026-03-08 03:00:00 -0400 EDT
	// 2026-03-09 02:30:00 -0400 EDT
}

// Schedules are managed from any process with access to the database.
func ExampleAdmin() { //nolint:testableexamples // it needs a program that runs the schedule
	ctx := context.Background()
	const dsn = "postgres://localhost/app"
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	schedules := cron.NewAdmin(backend, pool)
	if _, err := schedules.Trigger(ctx, "invoices", "ann"); err != nil {
		fmt.Println(err)
		return
	}
	records, err := schedules.History(ctx, "invoices", 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, record := range records {
		fmt.Println(record.ScheduledFor, record.State, record.Error)
	}
}
