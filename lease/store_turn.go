package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// takeTurn waits until no other process migrates the tables, and returns what
// lets the next one do so. It is called in a transaction.
func (s *Store) takeTurn(ctx context.Context, on querier) (end func(), err error) {
	name := "tenure migrates " + s.config.Prefix
	switch s.dialect {
	case PostgreSQL: // until the transaction ends, so that it works behind a pooler
		_, err = on.ExecContext(ctx, s.dialect.render(s.queries.turn), name)
		return func() {}, err
	case MySQL:
		return s.takeNamedLock(ctx, on, name)
	default:
		return func() {}, nil
	}
}

// takeNamedLock takes a lock of MySQL, which belongs to the connection: there a
// transaction ends with every change of a table. Changes of tables wait for the
// transactions that use them, by default for a year.
func (s *Store) takeNamedLock(ctx context.Context, on querier, name string) (end func(), err error) {
	deadline, _ := ctx.Deadline()
	seconds := int64(max(time.Until(deadline)/time.Second, 1))
	var before int64
	one := func(value any, query string, args ...any) error {
		return forEach(ctx, on, query, func(rows *sql.Rows) error { return rows.Scan(value) }, args...)
	}
	if err := one(&before, "SELECT @@lock_wait_timeout"); err != nil {
		return nil, err
	}
	release := func() {
		ctx, cancel := afterCall(ctx)
		defer cancel()
		// If they fail, the connection has ended, and the lock with it.
		_ = exec(ctx, on, s.queries.endTurn, name)
		_ = exec(ctx, on, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", before))
	}
	var got sql.NullBool
	err = one(&got, s.queries.turn, name, seconds)
	switch {
	case err == nil && !got.Bool:
		return nil, fmt.Errorf("%w: another process has been migrating the tables for %d s", tenure.ErrBusy, seconds)
	case err == nil:
		err = exec(ctx, on, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds))
	}
	if err != nil {
		release() // it may have been taken all the same
		return nil, err
	}
	return release, nil
}
