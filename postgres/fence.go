package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Fence makes a transaction commit only while terms are valid: as long as the transaction
// is open, the next term of each of their roles cannot begin. If one of the terms has
// ended, the error matches tenure.ErrFenced, and the transaction must be rolled back.
//
// Fence must be the last statement before the commit, and outside any savepoint. Rolling
// back a savepoint removes the fence with it, and later statements delay the next leader.
// Fence all terms of a transaction in one call: it locks their rows in a fixed order, so
// transactions cannot deadlock. [InTx] does all of this. If ctx ends during the call, pgx
// closes the connection.
//
// The database user needs the privileges of [Backend.ApplicationGrants]. If a role needs
// more than some thousand fenced transactions per second, do more work in each.
func Fence(ctx context.Context, tx pgx.Tx, terms ...*tenure.Term) error {
	backend, marks, err := termRefs(terms)
	if err != nil {
		return err
	}
	return backend.fence(ctx, tx, marks)
}

// FenceSQL is [Fence] for a transaction of database/sql, with any PostgreSQL driver.
// FenceSQL cannot check whether the transaction is still open: do not end it with a
// statement.
func FenceSQL(ctx context.Context, tx *sql.Tx, terms ...*tenure.Term) error {
	backend, marks, err := termRefs(terms)
	if err != nil {
		return err
	}
	return backend.fenceSQL(ctx, tx, marks)
}

// termRef is a term as its row identifies it.
type termRef struct {
	role string
	term int64
	node uuid.UUID
}

// termRefs identifies terms. All must come from one backend of this package.
func termRefs(terms []*tenure.Term) (*Backend, []termRef, error) {
	if len(terms) == 0 {
		return nil, nil, invalid("there is no term to fence with")
	}
	marks := make([]termRef, len(terms))
	var backend *Backend
	for i, term := range terms {
		b, ok := term.Backend().(*Backend)
		if !ok || backend != nil && b != backend {
			return nil, nil, invalid("the term of %s is not kept in this PostgreSQL database: it cannot fence a transaction", term.Role())
		}
		backend = b
		marks[i] = termRef{term.Role().Name(), term.Number(), term.NodeID()}
	}
	return backend, marks, nil
}

// fenceQuery locks the rows of terms, in the order of their roles: the lock is taken
// after the sort. The term is a key column because of the unique index. So the update for
// the next term waits for this lock, and the update for the end of the term does not.
func (b *Backend) fenceQuery(marks []termRef) (string, []any) {
	values := make([]string, len(marks))
	args := make([]any, 0, 3*len(marks))
	for i, m := range marks {
		values[i] = fmt.Sprintf("($%d::text, $%d::bigint, $%d::uuid)", 3*i+1, 3*i+2, 3*i+3)
		args = append(args, m.role, m.term, m.node.String())
	}
	return b.names.SQL(`
SELECT held.role, held.term
FROM {terms} t
JOIN (VALUES ` + strings.Join(values, ", ") + `) AS held(role, term, node_id)
    ON t.role = held.role AND t.term = held.term AND t.node_id = held.node_id
WHERE t.ended_at IS NULL
ORDER BY t.role
FOR KEY SHARE OF t`), args
}

func (b *Backend) fence(ctx context.Context, tx pgx.Tx, marks []termRef) error {
	if status := tx.Conn().PgConn().TxStatus(); status != 'T' {
		return fmt.Errorf("fence: the transaction is not open (status %q): it was ended or has failed", status)
	}
	query, args := b.fenceQuery(marks)
	rows, _ := tx.Query(ctx, query, args...) // its error is that of the rows
	valid, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v validTerm, err error) {
		err = row.Scan(&v.role, &v.term)
		return v, err
	})
	return b.counters.refused(verdict(marks, valid, err))
}

func (b *Backend) fenceSQL(ctx context.Context, tx *sql.Tx, marks []termRef) error {
	valid, err := b.validTermSQL(ctx, tx, marks)
	return b.counters.refused(verdict(marks, valid, err))
}

func (b *Backend) validTermSQL(ctx context.Context, tx *sql.Tx, marks []termRef) (valid []validTerm, err error) {
	query, args := b.fenceQuery(marks)
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v validTerm
		if err := rows.Scan(&v.role, &v.term); err != nil {
			return nil, err
		}
		valid = append(valid, v)
	}
	return valid, rows.Err()
}

// validTerm is a term of the transaction with a locked row.
type validTerm struct {
	role string
	term int64
}

// verdict compares the valid terms with the terms of the transaction. Several of these
// may be of one role.
func verdict(marks []termRef, valid []validTerm, err error) error {
	if err != nil {
		return fenceError(marks, err)
	}
	for _, m := range marks {
		if !slices.Contains(valid, validTerm{m.role, m.term}) {
			return fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, m.term, m.role)
		}
	}
	return nil
}

// fenceError explains a failure of the fencing statement. In REPEATABLE READ a
// newer term shows as a serialization failure.
func fenceError(marks []termRef, err error) error {
	var state interface{ SQLState() string }
	if errors.As(err, &state) && state.SQLState() == sqlstate.Serialization {
		return fmt.Errorf("%w: %s: %w", tenure.ErrFenced, marks[0].role, err)
	}
	return fmt.Errorf("fence %s: %w", marks[0].role, err)
}
