// Package fsm is the state machine of one election as a table: six states, fourteen
// inputs, and for every possible pair the next state and the actions. It does no I/O,
// reads no clock and starts no goroutine; the engine in package tenure performs the
// actions.
package fsm

import "fmt"

// State is one of the six states of an election.
type State uint8

// The states, in the order of an election without faults.
const (
	Stopped      State = iota // initial and terminal
	Follower                  // waiting for the next attempt
	Acquiring                 // tries to acquire the role
	Leader                    // leads the role
	Reconnecting              // has lost the session, the loss is not reported yet; does not lead
	Releasing                 // gives up the role
)

var stateNames = [...]string{"stopped", "follower", "acquiring", "leader", "reconnecting", "releasing"}

// String returns the state's lower-case name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText returns the state's lower-case name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Input is something that happened to an election.
type Input uint8

// The inputs.
const (
	Start Input = iota
	StopRequested
	AcquireAttempt
	AcquireSucceeded
	AcquireFailed
	DbError
	HealthOk
	HealthFailed
	ReacquireSucceeded
	ReacquireFailed
	GraceExpired
	ReleaseRequested
	ReleaseSucceeded
	ReleaseFailed
)

var inputNames = [...]string{
	"Start", "StopRequested", "AcquireAttempt", "AcquireSucceeded", "AcquireFailed", "DbError",
	"HealthOk", "HealthFailed", "ReacquireSucceeded", "ReacquireFailed", "GraceExpired",
	"ReleaseRequested", "ReleaseSucceeded", "ReleaseFailed",
}

// String returns the input's name as the source document spells it.
func (i Input) String() string {
	if int(i) < len(inputNames) {
		return inputNames[i]
	}
	return fmt.Sprintf("input(%d)", uint8(i))
}

// Action is something the engine must do because of a transition, in order.
type Action uint8

// The actions. "Connection" is the election's share of its node's session:
// closing it ends the session only where the transition says that the session
// is broken.
const (
	OpenConnection    Action = iota // take part in the node's session
	CloseConnection                 // take part no longer
	Reconnect                       // get a new session
	ScheduleAttempt                 // try at the next opportunity
	ComputeBackoff                  // ask the retry strategy when
	TryLock                         // try to take the role
	Unlock                          // release the role
	ResetRetry                      // forget failed attempts
	BeginHealth                     // the heartbeat vouches for the term from now on
	StartGrace                      // start the reconnect grace timer
	LogRecovered                    // say in the log that leadership was recovered
	EmitAcquired                    // on_acquired
	EmitAcquireFailed               // on_acquire_failed
	EmitLost                        // on_lost
	EmitReleased                    // on_released
	EmitError                       // on_error
	EmitStopped                     // on_stopped
)

var actionNames = [...]string{
	OpenConnection:    "OpenConnection",
	CloseConnection:   "CloseConnection",
	Reconnect:         "Reconnect",
	ScheduleAttempt:   "ScheduleAttempt",
	ComputeBackoff:    "ComputeBackoff",
	TryLock:           "TryLock",
	Unlock:            "Unlock",
	ResetRetry:        "ResetRetry",
	BeginHealth:       "BeginHealth",
	StartGrace:        "StartGrace",
	LogRecovered:      "LogRecovered",
	EmitAcquired:      "EmitAcquired",
	EmitAcquireFailed: "EmitAcquireFailed",
	EmitLost:          "EmitLost",
	EmitReleased:      "EmitReleased",
	EmitError:         "EmitError",
	EmitStopped:       "EmitStopped",
}

// String returns the action's name.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// Policy has the conditions of the table's footnotes.
type Policy struct {
	AutoReacquire bool // become a follower after a loss or a step-down
	Grace         bool // damp events while reconnecting
	SteppingDown  bool // the current release is a step-down, not a stop
}

// Step returns the next state and the actions to perform, or false when the input cannot
// occur in the state; then nothing changes.
func Step(state State, input Input, policy Policy) (State, []Action, bool) {
	for i := range Table {
		row := &Table[i]
		if row.From == state && row.Input == input && row.When.holds(policy) {
			return row.To, row.Actions, true
		}
	}
	return state, nil, false
}
