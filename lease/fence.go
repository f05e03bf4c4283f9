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

// Fence ties a transaction to terms: while the transaction is open, the next term of
// their roles cannot begin. If one of the terms has ended, the error matches
// tenure.ErrFenced; then roll back. The transaction must be on the backend's database.
//
// Call Fence as the last statement before the commit and outside any savepoint: a rollback
// to a savepoint would undo it. The next leader waits as long as the transaction stays
// open. Fence all terms of a transaction in one call: it locks them in a fixed order, to
// avoid deadlocks. [InTx] does all of this.
//
// On SQLite, Fence locks the file for writing. If it cannot, the error matches
// dberr.ErrBusy; roll back and retry.
func Fence(ctx context.Context, tx *sql.Tx, terms ...*tenure.Term) error {
	backend, err := backendOf(terms)
	if err != nil {
		return err
	}
	refs := make([]termRef, len(terms))
	for i, term := range terms {
		refs[i] = termRef{term.Role().Name(), term.Number(), term.NodeID().String()}
	}
	return backend.fence(ctx, tx, refs)
}

// InTx runs fn in a transaction on db, a pool on the backend's database, and commits
// only if the term is still valid. Otherwise it rolls back, and the error matches
// tenure.ErrFenced. Once the next term has begun, no write of this term can commit, at
// any isolation level. options may be nil.
//
// fn must not end the transaction. If fn returns an error or panics, or ctx ends, InTx
// rolls back. After an error of the commit itself, the transaction may have committed.
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

// backendOf returns the common backend of terms.
func backendOf(terms []*tenure.Term) (*Backend, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("%w: Fence needs at least one term", tenure.ErrInvalidConfig)
	}
	var backend *Backend
	for _, term := range terms {
		b, ok := term.Backend().(*Backend)
		if !ok || backend != nil && b != backend {
			return nil, fmt.Errorf("%w: the term of %s is not from this backend, so it cannot fence a transaction",
				tenure.ErrInvalidConfig, term.Role())
		}
		backend = b
	}
	return backend, nil
}

// termRef identifies a term in the row of its role.
type termRef struct {
	role string
	term int64
	node string
}

func errFenced(ref termRef) error {
	return fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, ref.term, ref.role)
}

func (b *Backend) fence(ctx context.Context, on sqldb.Querier, refs []termRef) error {
	if b.db.Dialect == sqldb.SQLite { // under another name of the file it would lock nothing
		if err := sqldb.CheckNames(ctx, on); err != nil {
			return b.db.Dialect.Explain("fence", err)
		}
	}
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(a, b termRef) int { return cmp.Compare(a.role, b.role) })
	for _, ref := range refs {
		valid, err := b.fenceOne(ctx, on, ref)
		switch {
		case err != nil && b.db.Dialect.FailureOf(err) == sqldb.FailureConflict:
			// The row, and so the term, has changed since the transaction's snapshot.
			return fmt.Errorf("%w: %w", errFenced(ref), err)
		case err != nil:
			return b.db.Dialect.Explain("fence "+ref.role, err)
		case !valid:
			return errFenced(ref)
		}
	}
	return nil
}

func (b *Backend) fenceOne(ctx context.Context, on sqldb.Querier, ref termRef) (valid bool, err error) {
	if b.db.Dialect == sqldb.SQLite {
		result, err := on.ExecContext(ctx, b.sql(fenceQueries[b.db.Dialect]), ref.role, ref.term, ref.node)
		if err != nil {
			return false, err
		}
		changed, err := result.RowsAffected()
		return changed > 0, err
	}
	err = sqldb.ForEach(ctx, on, b.sql(fenceQueries[b.db.Dialect]), func(*sql.Rows) error {
		valid = true
		return nil
	}, ref.role, ref.term, ref.node)
	return valid, err
}
