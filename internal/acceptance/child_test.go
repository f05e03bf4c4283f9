package acceptance_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/postgres"
)

// childVariable makes this test program a node instead; its value says what the
// node does. orderVariable holds the rest.
const (
	childVariable = "TENURE_ACCEPTANCE_CHILD"
	orderVariable = "TENURE_ACCEPTANCE_ORDER"
)

// What a child does while it leads.
const (
	childIdle   = "idle"   // nothing
	childWrites = "writes" // it stops in a fenced transaction, after the writes
	childFenced = "fenced" // it stops in a fenced transaction, before the commit
)

// order is the configuration of a child.
type order struct {
	DSN, Schema, Name string
	Lease             time.Duration
	Roles             int
	Gap               time.Duration // how far apart looks are that it reports; half a lease if 0
}

// runChild is the life of a child; it ends when its standard input does.
func runChild(kind string) int {
	var o order
	err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o)
	switch {
	case err != nil:
	case kind == childSpread:
		err = shareRoles(o)
	case kind == childMember:
		err = joinCluster(o)
	case kind == childProjects || kind == childProjecting:
		err = project(kind, o)
	default:
		err = lead(kind, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", o.Name, err)
		return 1
	}
	return 0
}

func lead(kind string, o order) error {
	ctx := steplog.Recording(context.Background())
	db, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("child", o.Name)
	node, err := tenure.Open(ctx, db, tenure.Config{
		Name: o.Name, Lease: o.Lease, CheckInterval: o.Lease / 2, FenceTimeout: time.Second, Logger: logger,
	})
	if err != nil {
		return err
	}
	count := &counter{wanted: o.Roles}
	var first *tenure.Election
	for i := range o.Roles {
		e, err := node.Election(tenure.NamedRole(roleName(i)))
		if err != nil {
			return err
		}
		if i == 0 {
			first = e
		}
		e.OnEvent(count.event)
		if kind == childIdle {
			if err := e.Start(ctx); err != nil {
				return err
			}
		}
	}
	children.Send(children.Report{Kind: "ready"})
	go children.Watch(cmp.Or(o.Gap, lease/2), children.Leads(first.IsLeader))
	lines := bufio.NewScanner(os.Stdin)
	if kind != childIdle {
		pool, err := pgxpool.New(ctx, o.DSN)
		if err != nil {
			return err
		}
		go func() {
			_ = first.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
				return stopInTransaction(ctx, kind, o.Schema, pool, first, term, lines)
			})
		}()
		select {} // the scanner belongs to the work now
	}
	for lines.Scan() {
	}
	return lines.Err()
}

// stopInTransaction writes under a term and reports "writing"; after a line on
// standard input it checks whether it leads and proceeds to commit.
func stopInTransaction(ctx context.Context, kind, schema string, pool *pgxpool.Pool, e *tenure.Election, term *tenure.Term, lines *bufio.Scanner) error {
	look := false
	pause := func() {
		children.Send(children.Report{Kind: "writing", Term: term.Number()})
		lines.Scan()
		look = e.IsLeader()
	}
	// The transaction must not end because the context does: that it may not
	// commit is for the fence to see to.
	err := inTx(context.WithoutCancel(ctx), kind, pool, term, pause, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{schema, "ledger"}.Sanitize()+" (term) VALUES ($1)", term.Number())
		return err
	})
	r := children.Report{Kind: "committed", Term: term.Number(), Lead: look}
	if err != nil {
		r.Error = err.Error()
	}
	children.Send(r)
	return nil
}

// inTx is postgres.InTx with a pause before or after the fence.
func inTx(ctx context.Context, kind string, pool *pgxpool.Pool, term *tenure.Term, pause func(), write func(pgx.Tx) error) error {
	if kind == childWrites {
		return postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
			err := write(tx)
			pause()
			return err
		})
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		err := postgres.Fence(ctx, tx, term)
		pause()
		return err
	})
}

// counter reports when the child holds all its roles.
type counter struct {
	wanted int
	held   atomic.Int64
}

func (c *counter) event(event tenure.Event) {
	switch event.Kind {
	case tenure.EventAcquired:
		if c.held.Add(1) == int64(c.wanted) {
			children.Send(children.Report{Kind: "acquired", At: event.At.UnixNano(), Term: event.Term.Number()})
		}
		if event.Role.Name() == role {
			context.AfterFunc(event.Term.Context(), func() { children.Send(children.Report{Kind: "ended", Term: event.Term.Number()}) })
		}
	case tenure.EventLost, tenure.EventReleased:
		c.held.Add(-1)
	}
}
