package cron

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// statementTimeout bounds a transaction of the scheduler's own, and a question.
const statementTimeout = 30 * time.Second

// tablesOf returns the tables of schedules.
func tablesOf(backend *postgres.Backend, database postgres.Database) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: features.Schedules, Database: database}
}

// work is what a scheduler works with in one term.
type work struct {
	node     *tenure.Node
	tables   schema.Tables
	database postgres.Database
	term     *tenure.Term
}

// fenced runs a transaction of the scheduler's own that commits only while the
// term stands, and whose locks do not long outlive a process that stops.
func (w *work) fenced(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	timing := w.node.Timing()
	window := strconv.FormatInt(max(1, (timing.Lease-timing.Margin).Milliseconds()), 10)
	return w.marked(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, boundLocks, window); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return fn(tx)
	})
}

// marked runs a fenced transaction that the next leader ends if it is still open
// then: it cannot commit any more, and may hold locks.
func (w *work) marked(ctx context.Context, fn func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return postgres.InTxOptions(ctx, w.database, options, w.term, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, markTransaction, w.key()); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return fn(tx)
	})
}

// key marks the transactions of this role's schedulers in the lock table.
func (w *work) key() int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(w.tables.Channel("schedules") + "\x00" + w.term.Role().Name())) // never fails
	return int64(hash.Sum64())
}
