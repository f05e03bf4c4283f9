//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/postgres"
)

const (
	writeInterval  = 200 * time.Millisecond
	longestHold    = 100 * time.Millisecond // of the transaction of a write
	patience       = 15 * time.Second       // of a write that its term does not cancel: longer than a fault stops it
	appendInterval = 200 * time.Millisecond
	appendLimit    = 3 * time.Second
)

// writer writes to the ledger of a role while its node leads it.
type writer struct {
	node      *node
	election  *tenure.Election
	attempted atomic.Int64 // when the node last began an attempt to acquire the role
}

func newWriter(n *node, election *tenure.Election) *writer {
	w := &writer{node: n, election: election}
	w.attempted.Store(record.Now())
	election.OnEvent(func(event tenure.Event) {
		if event.Kind == tenure.EventStateChange && event.To == tenure.Acquiring {
			w.attempted.Store(record.Now() - int64(time.Since(event.At)))
		}
	})
	return w
}

func (w *writer) run(ctx context.Context) error { return w.election.Run(ctx, w.lead) }

func (w *writer) lead(ctx context.Context, term *tenure.Term) error {
	role := w.election.Role().Name()
	send(began, message{Role: role, Term: term.Number(), From: w.attempted.Load(), To: record.Now()})
	pace := time.NewTicker(writeInterval)
	defer pace.Stop()
	for sequence := int64(1); ; sequence++ {
		select {
		case <-w.node.quiet:
		default:
			w.write(ctx, term, role, sequence)
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

// write makes one fenced write. Every second one fences its transaction first, and
// does not stop when the term ends: only the database can keep it from committing.
func (w *writer) write(ctx context.Context, term *tenure.Term, role string, sequence int64) {
	m := message{Role: role, Term: term.Number(), Sequence: sequence, From: record.Now()}
	var err error
	if sequence%2 == 0 {
		err = postgres.InTx(ctx, w.node.pool, term, func(tx pgx.Tx) error {
			return appendEntry(ctx, tx, &m)
		})
	} else {
		stubborn, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = pgx.BeginFunc(stubborn, w.node.pool, func(tx pgx.Tx) error {
			if err := postgres.Fence(stubborn, tx, term); err != nil {
				return err
			}
			return appendEntry(stubborn, tx, &m)
		})
	}
	m.To = record.Now()
	switch {
	case err == nil:
		send(wrote, m)
	case errors.Is(err, tenure.ErrFenced):
		send(fenced, m)
	default:
		send(unknown, m)
	}
}

// appendEntry locks the one row of the role's head, last, so that positions are in
// the order of the commits.
func appendEntry(ctx context.Context, tx pgx.Tx, m *message) error {
	hold := time.NewTimer(time.Duration(rand.Int64N(int64(longestHold)))) //nolint:gosec // nothing depends on it
	defer hold.Stop()
	select {
	case <-hold.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return tx.QueryRow(ctx, `
		WITH head AS (UPDATE chaos_heads SET position = position + 1 WHERE role = $1 RETURNING position)
		INSERT INTO chaos_ledger (role, position, term, sequence) SELECT $1, position, $2, $3 FROM head
		RETURNING position`, m.Role, m.Term, m.Sequence).Scan(&m.Position)
}
