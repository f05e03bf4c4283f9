//go:build linux

package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

// Kinds of reports of a node, in addition to those of [children.Watch].
const (
	ready        = "ready"
	connected    = "connected"
	disconnected = "disconnected"
	acquired     = "acquired"
	written      = "written"
)

// runChild is a node: a candidate that writes while it leads.
func runChild(args []string) error {
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	dsn := flags.String("dsn", "", "")
	name := flags.String("name", "", "")
	lease := flags.Duration("lease", 0, "")
	failoverWait := flags.Duration("failover-wait", 0, "")
	synchronous := flags.Bool("synchronous", false, "")
	level := slog.LevelError
	flags.TextVar(&level, "level", level, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := postgres.New(*dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("node", *name)
	config := tenure.Config{Name: *name, Lease: *lease, FailoverWait: *failoverWait, SynchronousFailover: *synchronous, Logger: logger}
	n, err := tenure.Open(ctx, db, config)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, *dsn)
	if err != nil {
		return err
	}
	election, err := n.Election(tenure.NamedRole("ledger"))
	if err != nil {
		return err
	}
	election.OnEvent(func(event tenure.Event) {
		if event.Kind == tenure.EventAcquired {
			children.Send(children.Report{Kind: acquired, At: event.At.UnixNano(), Term: event.Term.Number()})
		}
	})
	children.Send(children.Report{Kind: ready})
	go children.Watch(0, children.Leads(election.IsLeader), children.State{Holds: n.Connected, Begins: connected, Ends: disconnected})
	return election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		return writeLedger(ctx, pool, term, *name)
	})
}

// appendEntry locks the one row of the head, so that positions are in the order
// of the commits.
const appendEntry = `
WITH head AS (UPDATE ledger_head SET position = position + 1 RETURNING position)
INSERT INTO ledger (position, term, node, sequence) SELECT position, $1, $2, $3 FROM head`

// writeLedger writes sequence numbers, fenced by the term, until the term ends.
func writeLedger(ctx context.Context, pool *pgxpool.Pool, term *tenure.Term, name string) error {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for sequence := int64(1); ; sequence++ {
		err := postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, appendEntry, term.Number(), name, sequence)
			return err
		})
		if err == nil {
			children.Send(children.Report{Kind: written, Term: term.Number(), Sequence: sequence})
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return nil
		case <-term.Stopping():
			return nil
		}
	}
}
