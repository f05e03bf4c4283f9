package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// lockMigrations waits, in a transaction, until no other process migrates the
// tables. The caller calls unlock.
func (s *Store) lockMigrations(ctx context.Context, on sqldb.Querier) (unlock func(), err error) {
	name := "tenure migrates " + s.config.Prefix
	switch s.db.Dialect {
	case sqldb.PostgreSQL: // until the transaction ends, so that it works behind a pooler
		return func() {}, sqldb.Exec(ctx, on, s.db.Dialect.Render("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"), name)
	case sqldb.MySQL:
		return lockByName(ctx, on, name)
	default: // the transaction has locked the file
		return func() {}, nil
	}
}

// lockByName acquires a named lock of MySQL. It belongs to the connection, because on
// MySQL every change of a table ends the transaction. It also limits how long changes of
// tables wait for other transactions, by default a year.
func lockByName(ctx context.Context, on sqldb.Querier, name string) (unlock func(), err error) {
	deadline, _ := ctx.Deadline()
	seconds := int64(max(time.Until(deadline)/time.Second, 1))
	var before int64
	readOne := func(value any, query string, args ...any) error {
		return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error { return rows.Scan(value) }, args...)
	}
	if err := readOne(&before, "SELECT @@lock_wait_timeout"); err != nil {
		return nil, err
	}
	unlock = func() {
		ctx, cancel := sqldb.CleanupContext(ctx)
		defer cancel()
		// If they fail, the connection is broken, and its end releases the lock.
		_ = sqldb.Exec(ctx, on, "SELECT RELEASE_LOCK(?)", name)
		_ = sqldb.Exec(ctx, on, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", before))
	}
	var acquired sql.NullBool
	err = readOne(&acquired, "SELECT GET_LOCK(?, ?)", name, seconds)
	switch {
	case err == nil && !acquired.Bool:
		return nil, fmt.Errorf("%w: another process has been migrating the tables for %d s", dberr.ErrBusy, seconds)
	case err == nil:
		err = sqldb.Exec(ctx, on, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds))
	}
	if err != nil {
		unlock() // the lock may have been acquired despite the error
		return nil, err
	}
	return unlock, nil
}
