package tenure

import (
	"context"
	"fmt"

	"github.com/exactly-one/tenure/internal/endreason"
)

// Close shuts down all elections as [Election.Shutdown] does, leaves the cluster and
// closes the session. It is idempotent. It waits for running callbacks, so a callback must
// not call it. If ctx ends first, Close aborts the session: this releases all roles. The
// error then matches ErrShutdown, and ErrWorkRunning too if work has not returned.
func (n *Node) Close(ctx context.Context) error {
	defer n.logQueue.Flush(ctx, n.clock)
	var failed error
	runs := n.beginClose()
	defer n.clock.AfterFunc(n.cfg.StopTimeout, func() { n.logUnresigned(runs) })()
	for e, run := range runs {
		if failed == nil {
			failed = e.awaitFinished(ctx, run)
		}
	}
	s := n.beginLeave()
	if failed != nil {
		n.forceClose(s)
	}

	select {
	case <-n.group.Idle():
		return failed
	case <-ctx.Done():
	}
	n.forceClose(s)
	if failed == nil {
		failed = fmt.Errorf("leaving: %w: %w", ErrShutdown, context.Cause(ctx))
	}
	return failed
}

// beginClose stops all elections and returns the number of each one's run.
func (n *Node) beginClose() map[*Election]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true // no election is added or started after this
	n.cancel()
	runs := make(map[*Election]uint64, len(n.elections))
	for _, e := range n.elections {
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
		runs[e] = e.runNumber
	}
	return runs
}

// logUnresigned names the terms without a call of Resign by the caller of Campaign.
// Without the call, Close waits for ever, or as long as its context lasts.
func (n *Node) logUnresigned(runs map[*Election]uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range runs {
		if e.term == nil {
			continue
		}
		if number := e.term.unresigned(); number > 0 {
			n.log.Warn("the node cannot close: Resign was not called for a term that has ended", "role", e.role.Name(), "term", number)
		}
	}
}

// beginLeave asks the session, if there is one, to leave once it has no term.
func (n *Node) beginLeave() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		n.session.leaving = true
		n.session.wakeLocked()
	}
	return n.session
}

// forceClose ends everything that Close could not end in time.
func (n *Node) forceClose(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.abandonWork:
	default:
		close(n.abandonWork)
	}
	if s != nil {
		s.endLocked(ErrClosed)
	}
}
