package cron

import (
	"context"
	"database/sql"
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

// statementTimeout limits each transaction and query of the scheduler itself.
const statementTimeout = 30 * time.Second

// tablesOf returns the tables of schedules.
func tablesOf(backend *postgres.Backend, database postgres.Database) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: features.Schedules, Database: database}
}

// work has the dependencies of a scheduler in one term.
type work struct {
	node     *tenure.Node
	tables   schema.Tables
	database postgres.Database
	term     *tenure.Term
}

// fenced runs a transaction of the scheduler itself. It commits durably and only while
// the term is valid, and its locks are released soon if the process is paused.
func (w *work) fenced(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	timing := w.node.Timing()
	window := strconv.FormatInt(max(1, (timing.Lease-timing.Margin).Milliseconds()), 10)
	return w.marked(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTransaction, window); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return fn(tx)
	})
}

// marked runs a fenced transaction with a mark. If it is still open, the next leader
// terminates it: it can no longer commit but may hold locks.
func (w *work) marked(ctx context.Context, fn func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return postgres.InTxOptions(ctx, w.database, options, w.term, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, markTransaction, w.markKey()); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return fn(tx)
	})
}

// markedSQL is marked for database/sql.
func (w *work) markedSQL(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	return postgres.InSQLTx(ctx, db, options, w.term, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, markTransaction, w.markKey()); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return fn(tx)
	})
}

// markKey returns the lock key of the mark on the transactions of this role's schedulers.
func (w *work) markKey() int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(w.tables.Channel("schedules") + "\x00" + w.term.Role().Name())) // never fails
	return int64(hash.Sum64())
}
