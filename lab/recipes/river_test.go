package recipes

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

type invoiceArgs struct {
	Name string    `json:"name"`
	Tick time.Time `json:"tick"`
}

// Kind is the kind of job, as River wants it.
func (invoiceArgs) Kind() string { return "invoice" }

const (
	readJobs  = `SELECT args ->> 'name' FROM river_job WHERE kind = 'invoice' ORDER BY id`
	readTicks = `SELECT args ->> 'tick' FROM river_job WHERE kind = 'invoice' ORDER BY id`
)

// newRiver creates River's tables and returns a client that inserts only.
func newRiver(i *installation) *river.Client[pgx.Tx] {
	i.Helper()
	driver := riverpgxv5.New(i.pool)
	config := &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)}
	migrator, err := rivermigrate.New(driver, config)
	if err != nil {
		i.Fatal(err)
	}
	if _, err := migrator.Migrate(i.Context(), rivermigrate.DirectionUp, nil); err != nil {
		i.Fatal(err)
	}
	client, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		i.Fatal(err)
	}
	return client
}

func TestRiverInsertIsFenced(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	client := newRiver(i)
	i.check(readJobs, func(ctx context.Context, term *tenure.Term, name string, then func() error) error {
		return postgres.InTx(ctx, i.pool, term, func(tx pgx.Tx) error {
			if _, err := client.InsertTx(ctx, tx, invoiceArgs{Name: name}, nil); err != nil {
				return err
			}
			return then()
		})
	})
}

// newPeriodic returns a scheduler that inserts a job of River at each tick.
func newPeriodic(node *tenure.Node, pool *pgxpool.Pool, client *river.Client[pgx.Tx]) (*cron.Scheduler, error) {
	return newSchedule(node, pool, insertTick(client))
}

// insertTick inserts a job of River for a tick.
func insertTick(client *river.Client[pgx.Tx]) cron.Job {
	return func(ctx context.Context, run cron.Run) error {
		return run.InTx(ctx, func(tx pgx.Tx) error {
			once := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}} // the tick is one of them
			_, err := client.InsertTx(ctx, tx, invoiceArgs{Tick: run.ScheduledFor.UTC()}, once)
			return err
		})
	}
}

func newSchedule(node *tenure.Node, pool *pgxpool.Pool, job cron.Job) (*cron.Scheduler, error) {
	scheduler, err := cron.New(node, pool, cron.Config{})
	if err != nil {
		return nil, err
	}
	err = scheduler.Add(cron.Schedule{
		Name: "invoices", Expression: "* * * * * *", Policy: cron.AtLeastOnce, Job: job,
	})
	return scheduler, err
}

// TestRiverPeriodicJobsRunOncePerTick: of two nodes, the leader alone inserts, and each tick has one
// job, also while the sessions of the leaders are terminated.
func TestRiverPeriodicJobsRunOncePerTick(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	client := newRiver(i)
	for _, name := range []string{"node-1", "node-2"} {
		scheduler, err := newPeriodic(i.node(name), i.pool, client)
		if err != nil {
			t.Fatal(err)
		}
		postgrestest.Run(t, scheduler.Run)
	}
	waiter := &postgrestest.Installation{TB: t, Pool: i.pool}
	for jobs := range 3 {
		waiter.Await("a job", func() bool { return len(i.names(readTicks)) > jobs })
		i.exec(`SELECT pg_terminate_backend(n.pid) FROM tenure_leaders l JOIN tenure_nodes n ON n.id = l.node_id`)
	}
	seen := map[string]bool{}
	for _, tick := range i.names(readTicks) {
		if seen[tick] {
			t.Errorf("the tick %s has several jobs", tick)
		}
		seen[tick] = true
	}
}

// TestRiverJobIsUniqueByPeriodOnBothSides: while the periodic job of River and a schedule
// run side by side, the second insert of a period does nothing. The period is long, so
// that it does not end between the two.
func TestRiverJobIsUniqueByPeriodOnBothSides(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	client := newRiver(i)
	opts := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: 365 * 24 * time.Hour}}
	periodic, err := client.Insert(t.Context(), invoiceArgs{Name: "periodic"}, opts)
	if err != nil || periodic.UniqueSkippedAsDuplicate {
		t.Fatalf("the first insert: %+v, %v", periodic, err)
	}
	err = postgres.InTx(t.Context(), i.pool, i.lead(i.node("node")), func(tx pgx.Tx) error {
		scheduled, err := client.InsertTx(t.Context(), tx, invoiceArgs{Name: "scheduled"}, opts)
		if err == nil && !scheduled.UniqueSkippedAsDuplicate {
			t.Error("the second insert is no duplicate")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if names := i.names(readJobs); len(names) != 1 || names[0] != "periodic" {
		t.Errorf("the jobs are %q, want the first", names)
	}
}
