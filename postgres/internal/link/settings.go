package link

import (
	"strconv"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
)

// Bounds of the watch connection. One call lasts at most Config.WatchPeriod.
const (
	watchStatementTimeout = 40 * time.Second
	watchIdleTimeout      = 90 * time.Second
)

// migrationIdleTimeout bounds how long a stopped program keeps the lock of the
// installation. It pauses for a second between two attempts.
const migrationIdleTimeout = time.Minute

// AskTimeout bounds a read without a deadline, or with a later one, in its context.
const AskTimeout = 30 * time.Second

// LimitsOf returns the durations of a connection independent of a node. The context of
// each call bounds a duration of 0.
func LimitsOf(use pgdial.Use) pgdial.Limits {
	switch use {
	case pgdial.Watch:
		return pgdial.Limits{Lease: watchStatementTimeout, Statement: watchStatementTimeout, Lock: time.Second, Idle: watchIdleTimeout}
	case pgdial.Question:
		return pgdial.Limits{Statement: AskTimeout, Lock: 5 * time.Second}
	case pgdial.Migration:
		return pgdial.Limits{Idle: migrationIdleTimeout}
	}
	return pgdial.Limits{}
}

// OpeningLimits are the limits of the session connection during its opening: until trust
// begins, nothing depends on short statements, and the context bounds all of them.
func OpeningLimits(timing tenure.Timing, incarnation int32) pgdial.Limits {
	return pgdial.Limits{Lease: max(timing.Lease, watchStatementTimeout), Idle: timing.Lease, Incarnation: int64(incarnation)}
}

// SessionLimits are the limits of the session connection. Idle is the lease: the server
// itself ends a session after one lease of silence.
func SessionLimits(timing tenure.Timing, incarnation int32) pgdial.Limits {
	half := timing.RefreshInterval / 2
	return pgdial.Limits{Lease: timing.Lease, Statement: half, Lock: half, Idle: timing.Lease, Incarnation: int64(incarnation)}
}

// Milliseconds renders a duration for a setting, never as 0: for the server, 0 means no
// limit.
func Milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// FromMilliseconds is a number of milliseconds as the server returns it.
func FromMilliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// LimitWait bounds the waits for locks until the end of the transaction, by a number of
// milliseconds.
const LimitWait = `SELECT set_config('lock_timeout', $1, true)`
