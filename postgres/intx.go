package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Pool is where [InTx] begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type Pool interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Database is a [Pool] that also takes single statements: a *pgxpool.Pool or a
// *pgx.Conn.
type Database interface {
	Pool
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// InTx runs fn in a transaction and commits it only if the term is still valid then.
// Otherwise the transaction is rolled back, and the error matches tenure.ErrFenced. No
// write of one term is committed after the next has begun.
//
// fn must not end the transaction; it may use savepoints. If fn returns an error or
// panics, InTx rolls the transaction back and returns the error. After an error of the
// commit itself, the transaction may have committed. If ctx ends, the transaction ends
// too; a context from [tenure.Election.Run] ends with the term. The pool's user needs the
// privileges of [Backend.ApplicationGrants].
func InTx(ctx context.Context, pool Pool, term *tenure.Term, fn func(tx pgx.Tx) error) error {
	return InTxOptions(ctx, pool, pgx.TxOptions{}, term, fn)
}

// InTxOptions is [InTx] with options for the transaction, such as its isolation level. It
// is fenced at every level: no write of one term is committed after the next has begun.
// Above READ COMMITTED, a transaction begun before its term ended can still commit
// between the end of the term and the begin of the next one.
func InTxOptions(ctx context.Context, pool Pool, options pgx.TxOptions, term *tenure.Term, fn func(tx pgx.Tx) error) error {
	backend, marks, err := termRefs([]*tenure.Term{term})
	if err != nil {
		return err
	}
	if !term.Valid() {
		return backend.counters.refused(fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, term.Number(), term.Role()))
	}
	return backend.inTx(ctx, pool, options, marks, fn)
}

func (b *Backend) inTx(ctx context.Context, pool Pool, options pgx.TxOptions, marks []termRef, fn func(tx pgx.Tx) error) error {
	tx, err := pool.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		// Does nothing after a commit. A canceled context must not prevent it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), link.CloseTimeout)
		defer cancel()
		_ = tx.Rollback(ctx)
	}()
	if err := fn(fencedTx{tx}); err != nil {
		return err
	}
	if err := b.fence(ctx, tx, marks); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// fencedTx keeps a function from committing without the fence.
type fencedTx struct{ pgx.Tx }

var errOwnCommit = errors.New("the transaction is committed by InTx, after the function has returned")

func (fencedTx) Commit(context.Context) error { return errOwnCommit }

// InSQLTx is [InTx] for database/sql, with any PostgreSQL driver. options may be
// nil.
func InSQLTx(ctx context.Context, db *sql.DB, options *sql.TxOptions, term *tenure.Term, fn func(tx *sql.Tx) error) error {
	backend, marks, err := termRefs([]*tenure.Term{term})
	if err != nil {
		return err
	}
	if !term.Valid() {
		return backend.counters.refused(fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, term.Number(), term.Role()))
	}
	return backend.inSQLTx(ctx, db, options, marks, fn)
}

func (b *Backend) inSQLTx(ctx context.Context, db *sql.DB, options *sql.TxOptions, marks []termRef, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := b.fenceSQL(ctx, tx, marks); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
