//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/postgres"
)

// The timing of the nodes, as fractions of their lease, and the rest of their
// configuration.
const (
	checkFraction  = 4
	marginFraction = 10
	fenceTimeout   = time.Second
	watchPeriod    = 5 * time.Second
	stopTimeout    = 5 * time.Second
	publishTimeout = 2 * time.Second
	closeTimeout   = 15 * time.Second
	poolSize       = 16
)

// node is a process under test: a candidate for every role, with work under all of
// them.
type node struct {
	name     string
	roles    int
	receiver string // the address of webhooks
	tenure   *tenure.Node
	backend  *postgres.Backend
	pool     *pgxpool.Pool
	store    *eventstore.Store
	quiet    chan struct{} // closed when no more may be written
}

func roleName(i int) string { return fmt.Sprintf("role-%02d", i) }

func runChild(args []string) error {
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	n := &node{quiet: make(chan struct{})}
	dsn := flags.String("dsn", "", "")
	lease := flags.Duration("lease", 0, "")
	flags.StringVar(&n.name, "name", "", "")
	flags.IntVar(&n.roles, "roles", 0, "")
	flags.StringVar(&n.receiver, "receiver", "", "")
	trace := flags.String("steps", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go n.readOrders()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", n.name)
	recorder, err := openSteps(*trace)
	if err != nil {
		return err
	}
	if err := n.open(steps.With(ctx, recorder), *dsn, *lease, logger); err != nil {
		if ctx.Err() != nil {
			return nil // it was stopped before it had a session
		}
		return err
	}
	return n.run(ctx)
}

// readOrders reads the orders of the parent process, one of which ends its writes.
func (n *node) readOrders() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "quiet" {
			close(n.quiet)
			return
		}
	}
}

func (n *node) open(ctx context.Context, dsn string, lease time.Duration, logger *slog.Logger) (err error) {
	if n.backend, err = postgres.New(dsn, postgres.Config{WatchPeriod: watchPeriod}); err != nil {
		return err
	}
	config := tenure.Config{
		Name: n.name, Lease: lease, Margin: lease / marginFraction, CheckInterval: lease / checkFraction,
		FenceTimeout: fenceTimeout, StopTimeout: stopTimeout, Logger: logger,
	}
	if n.tenure, err = tenure.Open(ctx, n.backend, config); err != nil {
		return err
	}
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	pool.MaxConns = poolSize
	if n.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	n.store = eventstore.New(n.backend, eventstore.Config{})
	send(opened, message{Node: n.tenure.ID().String()})
	return nil
}

// run campaigns for everything until ctx ends, and then shuts down.
func (n *node) run(ctx context.Context) error {
	all, candidates, err := n.elections()
	if err != nil {
		return err
	}
	go watch(n.tenure, all)
	go n.sample(all)
	go n.appendEvents(ctx)
	failures := make(chan error, len(candidates))
	var running sync.WaitGroup
	for _, candidate := range candidates {
		running.Go(func() {
			if err := candidate(ctx); err != nil {
				failures <- err
			}
		})
	}
	<-ctx.Done()
	running.Wait()
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	failed := n.tenure.Close(closing)
	close(failures)
	for err := range failures {
		failed = errors.Join(failed, err)
	}
	n.pool.Close()
	n.backend.Close()
	return failed
}

// elections makes the elections of this node, and what runs them.
func (n *node) elections() (all []*tenure.Election, candidates []func(context.Context) error, err error) {
	for i := range n.roles {
		election, err := n.tenure.Election(tenure.NamedRole(roleName(i + 1)))
		if err != nil {
			return nil, nil, err
		}
		w := newWriter(n, election)
		all, candidates = append(all, election), append(candidates, w.run)
	}
	scheduler, err := n.scheduler()
	if err != nil {
		return nil, nil, err
	}
	views, err := n.views()
	if err != nil {
		return nil, nil, err
	}
	messages, err := n.outbox()
	if err != nil {
		return nil, nil, err
	}
	all = append(all, scheduler.Election(), views.Election(), messages.Election())
	return all, append(candidates, scheduler.Run, views.Run, messages.Run), nil
}
