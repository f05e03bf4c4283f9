package processor

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/retry"
)

// databaseError is a fault of the database during an attempt. No event is to
// blame for it.
type databaseError struct{ cause error }

func (e *databaseError) Error() string {
	return "the database's fault, no attempt is counted: " + e.cause.Error()
}

func (e *databaseError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// faultBackoff is the pause after an attempt that the database spoiled. Conflicts
// of transactions pass soon, failovers do not.
var faultBackoff = retry.ExponentialBackoff{Base: 50 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5}

// lockNotAvailable is the SQLSTATE of a wait for a lock that took too long.
const lockNotAvailable = "55P03"

// faultOf returns an error of a handler as one of the database's, if it is one. A
// handler that says itself that the event is to blame is believed.
func faultOf(failure error) error {
	var known *databaseError
	if errors.As(failure, &known) || errors.Is(failure, ErrPoison) || !databaseFault(failure) {
		return failure
	}
	return &databaseError{failure}
}

// databaseFault reports whether the database is to blame for an error: the same
// work can succeed when it is done again, or when the database is well again.
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
		"25P03", "25P04", // the transaction was open, or idle, for too long
		"40001", "40003", "40P01", // serialization failure, unknown completion, deadlock
		"55006", lockNotAvailable: // object in use
		return true
	}
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "53", "57", "58", "XX": // connection, resources, an operator, the system, a fault of the server
		return true
	}
	return false
}

// answered reports whether an error is the server's answer to a statement, after
// which the transaction is rolled back for certain: the end of the session would
// leave that open.
func answered(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR"
}
