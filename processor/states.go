package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

// states are the rows of all processors of a group. At rest one statement reads them for
// all. It is safe for concurrent use.
type states struct {
	database Database
	tables   schema.Tables
	term     *tenure.Term
	names    []string
	reading  chan struct{} // has one element while a read runs

	readAt time.Time // when the last read began; guarded by reading, as is rows
	rows   map[string]state
}

// read returns the row of a processor as it was at a time or later.
func (s *states) read(ctx context.Context, name string, since time.Time) (state, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return state{}, context.Cause(ctx)
	}
	if s.rows == nil || s.readAt.Before(since) {
		began := time.Now()
		rows, err := readStates(ctx, s.database, s.tables, s.term, s.names, false)
		if err != nil {
			return state{}, err
		}
		s.readAt, s.rows = began, rows
	}
	return s.rows[name], nil
}

// querier is a database or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readStates reads the rows of processors. With replaysAreLeft it does not look whether
// replays are requested. A processor without a row gets the zero state: no term owns it.
func readStates(ctx context.Context, from querier, tables schema.Tables, term *tenure.Term, names []string, replaysAreLeft bool) (map[string]state, error) {
	rows, err := from.Query(ctx, tables.SQL(readState), names, term.Role().Name(), term.Number(), replaysAreLeft)
	if err != nil {
		return nil, fmt.Errorf("read the state of processors: %w", err)
	}
	all := make(map[string]state, len(names))
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var name string
		s, err := scanState(func(into ...any) error { return row.Scan(append([]any{&name}, into...)...) })
		all[name] = s
		return none, err
	})
	if err != nil {
		err = fmt.Errorf("read the state of processors: %w", err)
	}
	return all, err
}
