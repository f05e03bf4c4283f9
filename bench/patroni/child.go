//go:build linux

package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// report is a line that a node prints.
type report struct {
	Kind     string // ready, connected, disconnected, acquired, lead, follow, written
	At       int64  // nanoseconds since 1970
	Last     int64  `json:",omitempty"` // follow: the last look that said "leader"
	Term     int64  `json:",omitempty"`
	Sequence int64  `json:",omitempty"`
}

var printing sync.Mutex

// send prints a report for the parent process.
func send(r report) {
	if r.At == 0 {
		r.At = time.Now().UnixNano()
	}
	line, _ := json.Marshal(r) // it has numbers and text only
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

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
			send(report{Kind: "acquired", At: event.At.UnixNano(), Term: event.Term.Number()})
		}
	})
	send(report{Kind: "ready"})
	go watch(n, election)
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
			send(report{Kind: "written", Term: term.Number(), Sequence: sequence})
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

// watch looks once a millisecond whether this process says that it leads. The
// process may be interrupted within a look: it counts as leading from after its
// first look to before its last one, so that an overlap is one for certain.
func watch(n *tenure.Node, election *tenure.Election) {
	leading, connected, last := false, false, time.Now()
	for ; ; time.Sleep(time.Millisecond) {
		before := time.Now()
		lead := election.IsLeader()
		if lead != leading {
			kind := "lead"
			if leading {
				kind = "follow"
			}
			send(report{Kind: kind, Last: last.UnixNano()})
		}
		leading, last = lead, before
		if now := n.Connected(); now != connected {
			kind := "connected"
			if connected {
				kind = "disconnected"
			}
			connected = now
			send(report{Kind: kind})
		}
	}
}
