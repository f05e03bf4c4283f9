package tenure

import (
	"fmt"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/steps"
)

// stopLocked asks the term to end.
func (t *Term) stopLocked(why termEnd) {
	if t.stopRequested {
		return
	}
	t.stopRequested, t.plannedEnd = true, &why
	t.work.Lock()
	t.work.closed, t.work.stopped = true, true
	if t.work.stopping != nil {
		close(t.work.stopping)
	}
	t.work.Unlock()
	n := t.election.node
	t.stopTimer = n.clock.AfterFunc(n.cfg.StopTimeout, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !t.releaseQueued {
			n.log.Warn("work in flight did not finish in time: its context is canceled",
				"role", t.Role().Name(), "term", t.number, "stop_timeout", n.cfg.StopTimeout)
			t.endLocked(t.plannedEnd.cause)
		}
	})
	t.advanceLocked()
}

// advance continues the end of the term after work has returned.
func (t *Term) advance() {
	n := t.election.node
	n.mu.Lock()
	defer n.mu.Unlock()
	t.advanceLocked()
}

// releasedLocked returns a channel that is closed when the lock is released or was lost
// with the session.
func (t *Term) releasedLocked() <-chan struct{} {
	switch {
	case t.isReleased:
		return closedChannel
	case t.released == nil:
		t.released = make(chan struct{})
	}
	return t.released
}

// setReleasedLocked records the lock as released, or lost with the session.
func (t *Term) setReleasedLocked() {
	t.isReleased = true
	if t.released != nil {
		close(t.released)
	}
}

// endLocked ends the term: trust ends now, the rest follows when the work has
// returned.
func (t *Term) endLocked(cause error) {
	t.endTrustLocked(cause)
	t.advanceLocked()
}

// endTrustLocked ends trust in the term and cancels its context, in this order.
func (t *Term) endTrustLocked(cause error) {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	t.election.current.CompareAndSwap(t, nil)
	t.work.Lock()
	t.work.closed = true
	t.session.step(steps.EndsTerm, t.Role().Name(), t.number)
	t.workReturnsLocked()
	t.work.Unlock()
	t.cancel(cause)
	t.session.trust.remove(t)
}

// advanceLocked takes every possible step of the term's end. In this order, trust ends,
// the context is canceled, the work returns, and the lock is released (Invariant 4). It is
// called whenever a step may have become possible.
func (t *Term) advanceLocked() {
	running, graceful := t.workState()
	if t.stopRequested && !graceful {
		t.endTrustLocked(t.plannedEnd.cause)
	}
	if !t.ended.Load() || running || t.releaseQueued {
		return
	}
	t.releaseQueued = true
	if t.stopTimer != nil {
		t.stopTimer()
	}
	t.session.queueReleaseLocked(t)
}

// termEnd returns how the request ends its term.
func (r Request) termEnd() termEnd {
	if r.Kind == RequestHandOver {
		return termEnd{reason: endreason.HandedOver, cause: withDetail(ErrHandedOver, requesterCause(r)), target: r.Target, by: r.By}
	}
	return termEnd{reason: endreason.SteppedDown, cause: withDetail(ErrSteppedDown, requesterCause(r)), target: r.Target, by: r.By}
}

func requesterCause(r Request) error {
	if r.By == "" {
		return nil
	}
	return fmt.Errorf("requested by %s", r.By)
}
