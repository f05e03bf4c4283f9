package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/sentinel"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Errors of this database only.
var (
	// ErrLocksIgnored: the server accepts advisory locks but does not enforce them.
	// It matches tenure.ErrRefused.
	ErrLocksIgnored = sentinel.New(tenure.ErrRefused, "the server does not enforce advisory locks")
	// ErrLockTableFull: the server's lock table has no room for more roles. It
	// matches tenure.ErrLock.
	ErrLockTableFull = sentinel.New(tenure.ErrLock, "the server's lock table is full")
)

// lost reports the end of a session by the failure of its connection.
func lost(doing string, cause error) error {
	return fmt.Errorf("%w: %w: %s: %w", tenure.ErrSessionLost, tenure.ErrConnection, doing, cause)
}

// superseded reports the end of a session by another program or a later session. Its
// connection still works.
func superseded(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrSuperseded, fmt.Sprintf(format, args...))
}

// classify wraps an error on a session's connection, to show whether the session has
// ended.
func classify(conn *pgx.Conn, doing string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && sqlstate.IsFatal(pg) || conn.IsClosed() {
		return lost(doing, err)
	}
	switch {
	case sqlstate.Has(err, sqlstate.NoSuchStatement):
		return superseded("%s: another program has reset the session: %v", doing, err)
	case errors.Is(err, dberr.ErrPooled):
		// The cause is not wrapped: if the next connection goes through a pooler too,
		// Open refuses it.
		return superseded("%s: %v", doing, err)
	case sqlstate.Has(err, sqlstate.ReadOnlyTransaction):
		return fmt.Errorf("%w: %w: %s: the server's configuration was made read-only, which fences it: %w",
			tenure.ErrSessionLost, dberr.ErrReadOnly, doing, err)
	case sqlstate.Has(err, sqlstate.QueryCanceled):
		return fmt.Errorf("%w: %s: %w", dberr.ErrDatabase, doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// lostOnly keeps the loss of a session and drops any other error.
func lostOnly(err error) error {
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	return nil
}
