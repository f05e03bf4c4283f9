package postgres

import (
	"context"
	"sync"
)

// news remembers that something may have changed until the session's Wait takes
// it. Announcing it interrupts a Wait in progress. It is safe for concurrent
// use.
type news struct {
	mu        sync.Mutex
	pending   bool
	interrupt context.CancelFunc // of the Wait in progress
}

// announce records a change.
func (n *news) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = true
	if n.interrupt != nil {
		n.interrupt()
	}
}

// take reports whether there was news and forgets it.
func (n *news) take() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	pending := n.pending
	n.pending = false
	return pending
}

// await registers what interrupts a Wait; nil ends it.
func (n *news) await(interrupt context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupt = interrupt
	if n.pending && interrupt != nil {
		interrupt()
	}
}
