package tenure

// HoldMutex takes the node's mutex, as a defect would that keeps it.
func HoldMutex(n *Node) (release func()) {
	n.mu.Lock()
	return n.mu.Unlock
}

// EndAttempts leaves an election as after an attempt that failed and a term that
// began and ended, without a sight of either for those who wait.
func EndAttempts(e *Election) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.attempt.totalFailures++
	e.attempt.err = nil
	e.wakeLocked()
}

// EndTrust ends trust in a term's session as the engine does before it takes the node's mutex.
func EndTrust(t *Term) { _ = t.session.trust.end(ErrSessionLost) }
