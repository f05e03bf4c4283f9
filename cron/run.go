package cron

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// State is how a run stands.
type State string

// The states of runs.
const (
	Waiting   State = "waiting"   // to be started
	Running   State = "running"   // claimed by a leader
	Succeeded State = "succeeded" // the job returned nil
	Failed    State = "failed"    // the job returned an error
	TimedOut  State = "timed_out" // the job returned an error after its Timeout
	Panicked  State = "panicked"  // the job panicked
	Abandoned State = "abandoned" // its leader did not record the end, and the policy is AtMostOnce
	Missed    State = "missed"    // nobody led in time
	Skipped   State = "skipped"   // an earlier run had not ended
)

// Run is one run of a schedule, as its job sees it.
type Run struct {
	ID           int64 // unique in the installation
	Schedule     string
	ScheduledFor time.Time // the tick, without jitter, in the schedule's zone; when it was asked for, if Manual
	Attempt      int       // from 1 on
	Manual       bool      // somebody asked for it
	RequestedBy  string    // who, if Manual
	Term         *tenure.Term

	begin func(ctx context.Context, fn func(pgx.Tx) error) error
}

// InTx runs fn in a transaction of the scheduler's database that commits only if
// the term still stands, as postgres.InTx does; otherwise it is rolled back, and
// the error matches tenure.ErrFenced. If this process stops while the
// transaction is open, the next leader ends it.
func (r Run) InTx(ctx context.Context, fn func(tx pgx.Tx) error) error { return r.begin(ctx, fn) }

// Record is the row of a run.
type Record struct {
	ID           int64
	Schedule     string
	ScheduledFor time.Time
	State        State
	Ticks        int64 // how many it stands for: more than 1 only for many that were missed
	Manual       bool
	RequestedBy  string
	Attempt      int
	Term         int64     // in which it ran last; 0 if it never did
	NodeID       uuid.UUID // uuid.Nil if it never ran
	NodeName     string
	ClaimedAt    time.Time
	StartedAt    time.Time // zero if it never ran
	EndedAt      time.Time // zero if it has not ended
	Error        string
}
