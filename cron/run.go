package cron

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// State is the state of a run.
type State string

// The states of runs.
const (
	Waiting   State = "waiting"   // waits to start, or for a retry
	Running   State = "running"   // claimed by a leader
	Succeeded State = "succeeded" // the job returned nil
	Failed    State = "failed"    // the job returned an error
	TimedOut  State = "timed_out" // the job returned an error after its Timeout
	Panicked  State = "panicked"  // the job panicked
	Abandoned State = "abandoned" // its leader did not record the end, and the policy is AtMostOnce
	Missed    State = "missed"    // there was no leader in time
	Skipped   State = "skipped"   // an earlier run had not ended
)

// Run is one run of a schedule, as passed to its job.
type Run struct {
	ID           int64 // unique in the installation
	Schedule     string
	ScheduledFor time.Time // the tick, without jitter, in the schedule's zone; if Manual, the time of the request
	Attempt      int       // counts from 1
	Manual       bool      // an operator triggered it
	RequestedBy  string    // the requester, if an operator triggered or backfilled it
	Term         *tenure.Term

	claimedAt time.Time     // by the database's clock; zero for a tick that is claimed now
	age       time.Duration // since then, when this attempt began

	output *output

	begin    func(ctx context.Context, fn func(pgx.Tx) error) error
	beginSQL func(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error
}

// InTx runs fn in a transaction of the scheduler's database. As in postgres.InTx, it
// commits only if the term is still valid. Otherwise it rolls back and the error matches
// tenure.ErrFenced. If this process is paused while the transaction is open, the next
// leader terminates it.
func (r Run) InTx(ctx context.Context, fn func(tx pgx.Tx) error) error { return r.begin(ctx, fn) }

// InSQLTx is [Run.InTx] for database/sql, with any PostgreSQL driver. db must lead to
// the scheduler's database.
func (r Run) InSQLTx(ctx context.Context, db *sql.DB, fn func(tx *sql.Tx) error) error {
	return r.beginSQL(ctx, db, fn)
}
