package tenure

// HoldMutex takes the node's mutex, as a defect would that keeps it.
func HoldMutex(n *Node) (release func()) {
	n.mu.Lock()
	return n.mu.Unlock
}
