package processor

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/retry"
)

// databaseError is an error of the database during an attempt. No event is to
// blame for it.
type databaseError struct{ cause error }

func (e *databaseError) Error() string {
	return "a database error, not counted as an attempt: " + e.cause.Error()
}

func (e *databaseError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// faultBackoff is the pause after a database error. Transaction conflicts pass
// quickly, failovers do not.
var faultBackoff = retry.ExponentialBackoff{Base: 50 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5}

// lockNotAvailable is the SQLSTATE of a lock timeout.
const lockNotAvailable = "55P03"

// faultOf wraps a handler's error in a databaseError if the database is to blame. If the
// handler blames the event, its blame takes precedence.
func faultOf(failure error) error {
	var known *databaseError
	if errors.As(failure, &known) || errors.Is(failure, ErrPoison) || !databaseFault(failure) {
		return failure
	}
	return &databaseError{failure}
}

// databaseFault reports whether the database is to blame for an error: the same
// work can succeed later.
func databaseFault(err error) bool {
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		return true
	}
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	code := state.SQLState()
	switch code {
	case "25006", // read_only_sql_transaction: after a failover
		"25P03", "25P04", // the transaction was open or idle for too long
		"40001", "40003", "40P01", // serialization failure, unknown completion, deadlock
		"55006", lockNotAvailable: // object in use
		return true
	}
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "53", "57", "58", "XX": // connection, resources, operator intervention, system error, internal error
		return true
	}
	return false
}

// serverResponded reports whether the error is the server's response to a statement.
// Then the transaction will certainly roll back; if the connection was lost,
// its outcome is unknown.
func serverResponded(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR"
}
