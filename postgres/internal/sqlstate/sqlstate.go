// Package sqlstate names the errors of PostgreSQL handled by package postgres.
package sqlstate

import (
	"errors"
	"regexp"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes.
const (
	InsufficientPrivilege = "42501"
	UndefinedTable        = "42P01"
	UndefinedColumn       = "42703"
	UndefinedFunction     = "42883"
	InvalidSchema         = "3F000"
	TooManyConnections    = "53300"
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

// denied matches the message about an object of the server's own, in English.
var denied = regexp.MustCompile(`^permission denied for (function|view|table) (pg_\w+)$`)

// Grant returns the statement that gives a quoted user a missing privilege on an object of
// the server's own, and ": "; otherwise nothing.
func Grant(err error, user string) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != InsufficientPrivilege {
		return ""
	}
	switch found := denied.FindStringSubmatch(pg.Message); {
	case found == nil:
		return ""
	case found[1] == "function":
		return "GRANT EXECUTE ON FUNCTION pg_catalog." + found[2] + " TO " + user + ": "
	default:
		return "GRANT SELECT ON TABLE pg_catalog." + found[2] + " TO " + user + ": "
	}
}

// IsFatal reports whether PostgreSQL ended the session with this error.
func IsFatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC"
}
