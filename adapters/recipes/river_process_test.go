package recipes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

const riverVariable = "TENURE_RIVER_TEST"

// runRiver is a process whose scheduler inserts a job of River at each tick while it
// leads. It runs until it is killed.
func runRiver(dsn string) {
	fmt.Fprintln(os.Stderr, scheduleRiver(context.Background(), dsn))
	os.Exit(1)
}

func scheduleRiver(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: fmt.Sprint("process-", os.Getpid())})
	if err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	scheduler, err := newPeriodic(node, pool, client)
	if err != nil {
		return err
	}
	go children.Watch(0, children.Leads(func() bool {
		for _, e := range node.Elections() {
			if e.IsLeader() {
				return true
			}
		}
		return false
	}))
	return errors.Join(scheduler.Run(ctx), errors.New("the scheduler has ended"))
}

// TestRiverJobsSurviveKilledLeaders: the process that leads is killed between two ticks,
// three times. Each period has one job, and none is left out.
func TestRiverJobsSurviveKilledLeaders(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	newRiver(i)
	var all []*children.Child
	start := func() {
		c, err := children.Start(children.Options{Name: fmt.Sprint("process ", len(all)), Env: []string{riverVariable + "=" + i.dsn}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		all = append(all, c)
	}
	start()
	start()
	awaitJobs := func(want int) {
		t.Helper()
		err := children.Until(t.Context(), time.Minute, 10*time.Millisecond, func() error {
			if got := len(i.names(readTicks)); got < want {
				return fmt.Errorf("%d jobs, want %d", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitJobs(2)
	for range 3 {
		leader := slices.IndexFunc(all, (*children.Child).Leading)
		if leader < 0 {
			t.Fatal("a job was inserted, but no process leads")
		}
		all[leader].Kill()
		start()
		awaitJobs(len(i.names(readTicks)) + 2)
	}
	for _, c := range all {
		c.Kill()
	}
	var last time.Time
	for _, text := range i.names(readTicks) {
		tick, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		if !last.IsZero() && tick.Sub(last) != time.Second {
			t.Errorf("a job of %v follows that of %v, want one for each second", tick, last)
		}
		last = tick
	}
}
