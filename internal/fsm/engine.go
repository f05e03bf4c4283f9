package fsm

// NotFed lists the inputs of the source's table that the engine never feeds, with the
// reason why they cannot occur in it. Every other input is fed somewhere.
//
// Of the others, DbError does not occur in Leader: a lost session is HealthFailed there,
// with the same rows in the table.
var NotFed = map[Input]string{
	HealthOk: "One heartbeat proves the session of a node for all its elections. " +
		"The table has neither a transition nor an action for it, so an input for each election would be work without an effect.",
	ReleaseFailed: "After a release that fails, the session may still hold the lock, so the engine gives the session up. " +
		"The election gets DbError, for which the table has the same rows.",
}

// Shared lists the actions not performed for one election: the node and its session
// perform them for all elections together. Each entry says where.
var Shared = map[Action]string{
	CloseConnection: "Election.cleanUpLocked takes a stopped election out of the session, which other elections still use. A broken session is closed by session.endLocked.",
	Reconnect:       "Node.run opens the next session when one is lost.",
	ComputeBackoff:  "session.backOffLocked asks the retry strategies of all elections whose attempts failed together.",
	TryLock:         "session.acquire tries all roles that are due in one call.",
	Unlock:          "session.release frees roles in one call, each when the work under its term has returned.",
	BeginHealth:     "session.heartbeat vouches for every term of the session.",
}
