// Package sqlstate names the errors of PostgreSQL handled by package postgres.
package sqlstate

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes.
const (
	InsufficientPrivilege = "42501"
	UndefinedTable        = "42P01"
	UndefinedColumn       = "42703"
	UndefinedFunction     = "42883"
	InvalidSchema         = "3F000"
	OutOfMemory           = "53200" // here: of the shared lock table
	LockNotAvailable      = "55P03"
	Serialization         = "40001"
	QueryCanceled         = "57014" // by statement_timeout, or by another session
	NoSuchStatement       = "26000"
	ReadOnlyTransaction   = "25006"
	Prerequisite          = "55000" // as a migration raises it
	ObjectInUse           = "55006" // as the trigger on the rows of roles raises it
	Untranslatable        = "22P05" // the database's encoding has no such character
	DuplicateTable        = "42P07" // also an index, a view or a sequence
	DuplicateObject       = "42710" // also a type
	DuplicateFunction     = "42723"
)

// Has reports whether an error came from PostgreSQL with this SQLSTATE.
func Has(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// IsFatal reports whether PostgreSQL ended the session with this error.
func IsFatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC"
}
