package gocron_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// All jobs run on the leader of the role "jobs".
func ExampleElector() {
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := runElected(context.Background(), dsn); err != nil {
		log.Fatal(err)
	}
	// Output: report by api-1 true <nil>
}

func runElected(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	election, err := node.Election(tenure.NamedRole("jobs"))
	if err != nil {
		return err
	}
	return election.Participate(ctx, func(ctx context.Context) error {
		elector := tenuregocron.NewElector(election)
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
		if err != nil {
			return err
		}
		defer func() { _ = scheduler.Shutdown() }()
		ctx, stop := context.WithCancel(ctx) // in a program: signal.NotifyContext
		defer stop()
		report := elector.Task(func(ctx context.Context, term *tenure.Term) error {
			defer stop()
			fmt.Println("report by", node.Name(), term.Valid(), ctx.Err()) // in a program: postgres.InTx(ctx, pool, term, …)
			return nil
		})
		if _, err := scheduler.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(report)); err != nil {
			return err
		}
		scheduler.Start()
		<-ctx.Done()
		return nil
	})
}

// Each job runs on whichever node begins its tick first.
func ExampleLocker() {
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := runLocked(context.Background(), dsn); err != nil {
		log.Fatal(err)
	}
	// Output: report by api-1 true <nil>
}

func runLocked(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	locker, err := tenuregocron.NewLocker(node, tenuregocron.LockerConfig{MinInterval: 30 * time.Second})
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	defer func() { _ = scheduler.Shutdown() }()
	ctx, stop := context.WithCancel(ctx) // in a program: signal.NotifyContext
	defer stop()
	report := locker.Task("report", func(ctx context.Context, term *tenure.Term) error {
		defer stop()
		fmt.Println("report by", node.Name(), term.Valid(), ctx.Err()) // in a program: postgres.InTx(ctx, pool, term, …)
		return nil
	})
	now := gocron.WithStartAt(gocron.WithStartImmediately())
	if _, err := scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(report), gocron.WithName("report"), now); err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	return nil
}
