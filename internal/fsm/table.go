package fsm

// Condition restricts a row to some policies: the footnotes of the source's
// transition table.
type Condition uint8

// The conditions.
const (
	Always            Condition = iota
	Reacquire                   // auto_reacquire
	NoReacquire                 // not auto_reacquire
	Grace                       // reconnect_grace is set
	NoGraceReacquire            // reconnect_grace is not set, auto_reacquire
	NoGraceStop                 // reconnect_grace is not set, not auto_reacquire
	StepDownReacquire           // requested by step_down, auto_reacquire
	StepDownElse                // every other release
)

func (c Condition) holds(p Policy) bool {
	switch c {
	case Reacquire:
		return p.AutoReacquire
	case NoReacquire:
		return !p.AutoReacquire
	case Grace:
		return p.Grace
	case NoGraceReacquire:
		return !p.Grace && p.AutoReacquire
	case NoGraceStop:
		return !p.Grace && !p.AutoReacquire
	case StepDownReacquire:
		return p.SteppingDown && p.AutoReacquire
	case StepDownElse:
		return !(p.SteppingDown && p.AutoReacquire)
	default:
		return true
	}
}

// Row is one line of the transition table.
type Row struct {
	From    State
	Input   Input
	When    Condition
	To      State
	Actions []Action
}

var (
	stop      = []Action{CloseConnection, EmitStopped}
	lost      = []Action{EmitLost, CloseConnection, Reconnect, ScheduleAttempt}
	lostStop  = []Action{EmitLost, CloseConnection, EmitStopped}
	graceful  = []Action{CloseConnection, StartGrace, Reconnect}
	lateLost  = []Action{EmitLost, ScheduleAttempt}
	tryFailed = []Action{EmitAcquireFailed, EmitError, ComputeBackoff, ScheduleAttempt}
)

// Table is the transition table of the source document (pgleaderlock, section
// 3.3), with its footnotes as conditions and two deliberate deviations:
//
//   - Acquiring × DbError emits on_acquire_failed and on_error instead of
//     on_lost: nothing was held, so nothing was lost.
//   - Releasing × ReleaseFailed after a step-down with auto_reacquire becomes
//     a follower on a new session instead of stopping for ever. The old session
//     is given up, so the role is free either way.
//
// Every way into Stopped emits on_stopped.
var Table = []Row{
	{Stopped, Start, Always, Follower, []Action{OpenConnection, ScheduleAttempt}},

	{Follower, AcquireAttempt, Always, Acquiring, []Action{TryLock}},
	{Follower, StopRequested, Always, Stopped, stop},

	{Acquiring, AcquireSucceeded, Always, Leader, []Action{EmitAcquired, ResetRetry, BeginHealth}},
	{Acquiring, AcquireFailed, Always, Follower, []Action{ComputeBackoff, EmitAcquireFailed, ScheduleAttempt}},
	{Acquiring, DbError, Reacquire, Follower, tryFailed},
	{Acquiring, DbError, NoReacquire, Stopped, []Action{EmitAcquireFailed, EmitError, CloseConnection, EmitStopped}},
	{Acquiring, StopRequested, Always, Stopped, stop},

	{Leader, HealthOk, Always, Leader, nil},
	{Leader, HealthFailed, Grace, Reconnecting, graceful},
	{Leader, HealthFailed, NoGraceReacquire, Follower, lost},
	{Leader, HealthFailed, NoGraceStop, Stopped, lostStop},
	{Leader, DbError, Grace, Reconnecting, graceful},
	{Leader, DbError, NoGraceReacquire, Follower, lost},
	{Leader, DbError, NoGraceStop, Stopped, lostStop},
	{Leader, StopRequested, Always, Releasing, []Action{Unlock}},
	{Leader, ReleaseRequested, Always, Releasing, []Action{Unlock}},

	{Reconnecting, ReacquireSucceeded, Always, Leader, []Action{LogRecovered, ResetRetry, BeginHealth}},
	{Reconnecting, ReacquireFailed, Reacquire, Follower, lateLost},
	{Reconnecting, ReacquireFailed, NoReacquire, Stopped, lostStop},
	{Reconnecting, GraceExpired, Reacquire, Follower, lateLost},
	{Reconnecting, GraceExpired, NoReacquire, Stopped, lostStop},
	{Reconnecting, StopRequested, Always, Stopped, stop},

	{Releasing, ReleaseSucceeded, StepDownReacquire, Follower, []Action{EmitReleased, ScheduleAttempt}},
	{Releasing, ReleaseSucceeded, StepDownElse, Stopped, []Action{EmitReleased, CloseConnection, EmitStopped}},
	{Releasing, ReleaseFailed, StepDownReacquire, Follower, []Action{EmitError, CloseConnection, Reconnect, ScheduleAttempt}},
	{Releasing, ReleaseFailed, StepDownElse, Stopped, []Action{EmitError, CloseConnection, EmitStopped}},
	{Releasing, DbError, StepDownReacquire, Follower, []Action{EmitError, CloseConnection, Reconnect, ScheduleAttempt}},
	{Releasing, DbError, StepDownElse, Stopped, []Action{EmitError, CloseConnection, EmitStopped}},
}
