package lease

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Fence makes a transaction commit only while terms stand: as long as it is
// open, the next term of each of their roles cannot begin. It returns an error
// that matches tenure.ErrFenced if one of them has ended; the transaction must
// then be rolled back. The tables of the backend must be in the transaction's
// database.
//
// It must be the last statement before the commit, and outside any savepoint: a
// savepoint that is rolled back takes the fence with it, and statements after it
// delay the next leader, who waits for as long as the transaction stays open:
// nothing here ends it. Fence all terms of a transaction in one call, which
// takes them in a fixed order, so that transactions cannot deadlock. [InTx] does
// all of this.
//
// On SQLite it takes the lock for writing, if the transaction does not have it
// yet; an error that matches tenure.ErrBusy says that it could not: roll back
// and try again.
func Fence(ctx context.Context, tx *sql.Tx, terms ...*tenure.Term) error {
	backend, err := backendOf(terms)
	if err != nil {
		return err
	}
	marks := make([]termRef, len(terms))
	for i, term := range terms {
		marks[i] = termRef{term.Role().Name(), term.Number(), term.NodeID().String()}
	}
	return backend.fence(ctx, tx, marks)
}

// InTx runs fn in a transaction on db, a pool on the backend's database, that
// commits only if the term still stands then; otherwise it is rolled back, and
// the error matches tenure.ErrFenced. No write of one term is committed after
// the next has begun. The options may be nil; it is fenced at every isolation
// level.
//
// fn must not end the transaction itself. If it returns an error or panics, the
// transaction is rolled back and the error returned. As always, an error of the
// commit itself can mean that it happened. If ctx ends, the transaction ends
// with it.
func InTx(ctx context.Context, db *sql.DB, options *sql.TxOptions, term *tenure.Term, fn func(tx *sql.Tx) error) error {
	if _, err := backendOf([]*tenure.Term{term}); err != nil {
		return err
	}
	if !term.Valid() {
		return errFenced(termRef{term.Role().Name(), term.Number(), ""})
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := Fence(ctx, tx, term); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// backendOf returns the backend of terms, which must be the same one.
func backendOf(terms []*tenure.Term) (*Backend, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("%w: there is no term to fence with", tenure.ErrInvalidConfig)
	}
	var backend *Backend
	for _, term := range terms {
		b, ok := term.Backend().(*Backend)
		if !ok || backend != nil && b != backend {
			return nil, fmt.Errorf("%w: the term of %s is not kept in this database: it cannot fence a transaction",
				tenure.ErrInvalidConfig, term.Role())
		}
		backend = b
	}
	return backend, nil
}

// termRef is a term as its row identifies it.
type termRef struct {
	role string
	term int64
	node string
}

func errFenced(m termRef) error {
	return fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, m.term, m.role)
}

func (b *Backend) fence(ctx context.Context, on sqldb.Querier, marks []termRef) error {
	marks = slices.Clone(marks)
	slices.SortFunc(marks, func(a, b termRef) int { return cmp.Compare(a.role, b.role) })
	for _, m := range marks {
		stands, err := b.fenceOne(ctx, on, m)
		switch {
		case err != nil && b.db.Dialect.FailureOf(err) == sqldb.FailureConflict:
			// The row has changed since the transaction's snapshot: so has the term.
			return fmt.Errorf("%w: %w", errFenced(m), err)
		case err != nil:
			return b.db.Dialect.Explain("fence "+m.role, err)
		case !stands:
			return errFenced(m)
		}
	}
	return nil
}

func (b *Backend) fenceOne(ctx context.Context, on sqldb.Querier, m termRef) (stands bool, err error) {
	if b.db.Dialect == sqldb.SQLite {
		result, err := on.ExecContext(ctx, b.queries.fence, m.role, m.term, m.node)
		if err != nil {
			return false, err
		}
		changed, err := result.RowsAffected()
		return changed > 0, err
	}
	err = sqldb.ForEach(ctx, on, b.queries.fence, func(*sql.Rows) error {
		stands = true
		return nil
	}, m.role, m.term, m.node)
	return stands, err
}
