package tenure

import "github.com/exactly-one/tenure/internal/fsm"

// State is a state of an election.
type State = fsm.State

// The states of an election. Whether a node leads follows from the term, not from
// the state: see [Election.IsLeader].
const (
	Stopped      = fsm.Stopped      // does not campaign; the initial state
	Follower     = fsm.Follower     // a standby that waits for the next attempt
	Acquiring    = fsm.Acquiring    // tries to acquire the role
	Leading      = fsm.Leader       // leads the role
	Reconnecting = fsm.Reconnecting // has lost the session; the reconnect grace has not ended
	Releasing    = fsm.Releasing    // gives up the role
)
