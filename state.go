package tenure

import "github.com/exactly-one/tenure/internal/fsm"

// State is a state of an election. Whether a node leads follows from the term, not
// from the state: see [Election.IsLeader].
type State uint8

// The states of an election.
const (
	Stopped      State = State(fsm.Stopped)      // does not campaign; the initial state
	Follower     State = State(fsm.Follower)     // a standby that waits for the next attempt
	Acquiring    State = State(fsm.Acquiring)    // tries to acquire the role
	Leading      State = State(fsm.Leader)       // leads the role
	Reconnecting State = State(fsm.Reconnecting) // has lost the session; the reconnect grace has not ended
	Releasing    State = State(fsm.Releasing)    // gives up the role
)

// String returns the state's name in lower case; Leading has the name "leader".
func (s State) String() string { return fsm.State(s).String() }

// MarshalText returns the state's name in lower case.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
