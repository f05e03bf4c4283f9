package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// bench is an installation on a server, with a member that leads all roles.
type bench struct {
	options

	dsn     string
	backend *postgres.Backend
	pool    *pgxpool.Pool
	member  *cluster.Member
	store   *eventstore.Store
	quiet   *eventstore.Store
	jobs    assign.Config
	role    int
	events  *ledger // of the processor that runs
}

const jobsTable = `
CREATE TABLE public.jobs (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	state text NOT NULL DEFAULT 'pending',
	node_id uuid,
	capability text NOT NULL DEFAULT '',
	attempts integer NOT NULL DEFAULT 0,
	assignment bigint NOT NULL DEFAULT 0
)`

func newBench(ctx context.Context, o options, dsn string) (b *bench, err error) {
	b = &bench{options: o, dsn: dsn, jobs: assign.Config{Table: pgx.Identifier{"public", "jobs"}, MaxPerNode: 1 << 30}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.backend, err = postgres.New(dsn, postgres.Config{}); err != nil {
		return b, err
	}
	err = b.backend.Migrate(ctx, "processors", "events")
	if err != nil {
		return b, err
	}
	if b.pool, err = pgxpool.New(ctx, dsn); err != nil {
		return b, err
	}
	b.store, b.quiet = eventstore.New(b.backend, eventstore.Config{}), eventstore.New(b.backend, eventstore.Config{NoNotify: true})
	setup, err := assign.Setup(b.backend, b.jobs)
	if err != nil {
		return b, err
	}
	if _, err = b.pool.Exec(ctx, jobsTable+";\n"+setup); err != nil {
		return b, err
	}
	b.member, err = cluster.Join(ctx, b.backend, tenure.Config{Name: "bench", Logger: slog.New(slog.DiscardHandler)}, cluster.Config{Roles: []cluster.NodeRole{cluster.Worker, cluster.Scheduler}})
	return b, err
}

func (b *bench) close() {
	if b.member != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = b.member.Shutdown(ctx) // the server ends with the program
	}
	if b.pool != nil {
		b.pool.Close()
	}
	if b.backend != nil {
		b.backend.Close()
	}
}

// process runs a processor until stop is called.
func (b *bench) process(ctx context.Context, config processor.Config) (stop func() error, err error) {
	b.role++
	b.events = newLedger()
	config.Name, config.Log, config.Handle = fmt.Sprint("bench ", b.role), b.store.Log(), b.events.handle
	config.Start.End = true
	group, err := processor.NewGroup(b.member.Node(), tenure.NamedRole(config.Name), b.pool, processor.GroupConfig{})
	if err != nil {
		return nil, err
	}
	if err := group.Add(config); err != nil {
		return nil, err
	}
	stop = inBackground(ctx, group.Run)
	return stop, b.caughtUp(ctx)
}

// caughtUp waits until the processor has handled an event that was appended now.
func (b *bench) caughtUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		number, at := b.events.begin()
		if err := b.store.Append(ctx, b.pool, eventstore.NewEvent{Type: "bench", Data: number}); err != nil {
			return err
		}
		at(time.Now())
		select {
		case <-b.events.handled(number):
			return nil
		case <-time.After(500 * time.Millisecond): // the processor starts at the end of the log
		case <-ctx.Done():
			return errors.New("the processor does not handle events")
		}
	}
}

// inBackground runs a function until stop is called.
func inBackground(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }() // stop waits for it
	return func() error {
		cancel()
		return <-ended
	}
}

// write runs writers on a connection each, and returns the commits a second after a while.
func (b *bench) write(ctx context.Context, writers int, commit func(context.Context, *pgx.Conn) error) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		group   sync.WaitGroup
		commits atomic.Int64
		once    sync.Once
		failure error
	)
	fail := func(err error) { once.Do(func() { failure = err; cancel() }) }
	ready := make(chan struct{})
	var opened sync.WaitGroup
	for range writers {
		opened.Add(1)
		group.Go(func() {
			conn, err := pgx.Connect(ctx, b.dsn)
			opened.Done()
			if err != nil {
				fail(err)
				return
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			for <-ready; ctx.Err() == nil; commits.Add(1) {
				if err := commit(ctx, conn); err != nil && ctx.Err() == nil {
					fail(err)
				}
			}
		})
	}
	opened.Wait()
	close(ready)
	pause(ctx, b.length/4)
	before, began := commits.Load(), time.Now()
	pause(ctx, b.length)
	rate := float64(commits.Load()-before) / time.Since(began).Seconds()
	cancel()
	group.Wait()
	return rate, failure
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
