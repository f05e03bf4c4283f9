package tenure

import "github.com/exactly-one/tenure/internal/fsm"

// State is a state of an election.
type State = fsm.State

// The states of an election. Leading is not decided by the state but by the
// term: see [Election.IsLeader].
const (
	Stopped      = fsm.Stopped      // not standing; initial and terminal
	Follower     = fsm.Follower     // standing, waiting for the next attempt
	Acquiring    = fsm.Acquiring    // trying to take the role
	Leading      = fsm.Leader       // holding the role
	Reconnecting = fsm.Reconnecting // lost the session, within the reconnect grace
	Releasing    = fsm.Releasing    // giving the role up
)
