// Package signal passes on the reports of connections: changes, changed nodes, and
// silence.
package signal

import (
	"context"
	"sync"
)

// ChangeSignal records a possible change until the session's Wait reads it. Announcing a
// change interrupts a Wait in progress. It is safe for concurrent use.
type ChangeSignal struct {
	mu        sync.Mutex
	pending   bool
	announced uint64             // changes so far
	interrupt context.CancelFunc // of the Wait in progress
	taken     bool               // the last change was read
	handled   []chan struct{}    // closed when the engine waits again after the reading
}

// AnnounceAndTrack is Announce. The returned channel is closed when the engine has
// handled the change and waits again.
func (n *ChangeSignal) AnnounceAndTrack() <-chan struct{} {
	n.Announce()
	n.mu.Lock()
	defer n.mu.Unlock()
	done := make(chan struct{})
	n.handled = append(n.handled, done)
	return done
}

// Announce records a change.
func (n *ChangeSignal) Announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = true
	n.announced++
	if n.interrupt != nil {
		n.interrupt()
	}
}

// Take reports whether there was a change, and clears it.
func (n *ChangeSignal) Take() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	pending := n.pending
	n.pending = false
	n.taken = n.taken || pending
	return pending
}

// Await registers the function to interrupt a Wait with; nil ends it.
func (n *ChangeSignal) Await(interrupt context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupt = interrupt
	if n.taken && interrupt != nil {
		for _, done := range n.handled {
			close(done)
		}
		n.taken, n.handled = false, nil
	}
	if n.pending && interrupt != nil {
		interrupt()
	}
}

// Announcements returns the number of changes so far.
func (n *ChangeSignal) Announcements() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.announced
}
