package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/sentinel"
)

// SQLSTATE codes that this package handles.
const (
	codeInsufficientPrivilege = "42501"
	codeUndefinedTable        = "42P01"
	codeUndefinedColumn       = "42703"
	codeUndefinedFunction     = "42883"
	codeInvalidSchema         = "3F000"
	codeOutOfMemory           = "53200" // here: of the shared lock table
	codeLockNotAvailable      = "55P03"
	codeSerialization         = "40001"
	codeQueryCanceled         = "57014" // by statement_timeout, or by another session
	codeNoSuchStatement       = "26000"
	codeReadOnlyTransaction   = "25006"
	codePrerequisite          = "55000" // as a migration raises it
	codeObjectInUse           = "55006" // as the trigger on the rows of roles raises it
	codeUntranslatable        = "22P05" // the database's encoding has no such character
	codeDuplicateTable        = "42P07" // also an index, a view or a sequence
	codeDuplicateObject       = "42710" // also a type
	codeDuplicateFunction     = "42723"
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

// lost reports the end of a session whose connection has failed.
func lost(doing string, cause error) error {
	return fmt.Errorf("%w: %w: %s: %w", tenure.ErrSessionLost, tenure.ErrConnection, doing, cause)
}

// superseded reports a session that no longer belongs to this node, although its
// connection still works.
func superseded(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrSuperseded, fmt.Sprintf(format, args...))
}

// fatal reports whether PostgreSQL ended the session with this error.
func fatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC"
}

// classify returns what an error on a session's connection means for the session.
func classify(conn *pgx.Conn, doing string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && fatal(pg) || conn.IsClosed() {
		return lost(doing, err)
	}
	switch {
	case hasCode(err, codeNoSuchStatement):
		return superseded("%s: another program has reset the session: %v", doing, err)
	case errors.Is(err, dberr.ErrPooled):
		// The cause is not wrapped: if the next connection goes through a pooler too,
		// Open refuses it.
		return superseded("%s: %v", doing, err)
	case hasCode(err, codeReadOnlyTransaction):
		return fmt.Errorf("%w: %w: %s: the server's configuration was made read-only, which fences it: %w",
			tenure.ErrSessionLost, dberr.ErrReadOnly, doing, err)
	case hasCode(err, codeQueryCanceled):
		return fmt.Errorf("%w: %s: %w", dberr.ErrDatabase, doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
