package tenure

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/steps"
)

// expire ends the session when its trust deadline has passed. It first ends trust and
// cancels the contexts, without n.mu.
func (s *session) expire() {
	_ = s.trust.end(ErrTrustExpired)
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.started {
		s.endLocked(ErrTrustExpired)
	}
}

// fail ends the session after an error, in the same order as expire.
func (s *session) fail(err error) {
	_ = s.trust.end(s.endCause(err))
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.endLocked(err)
}

// endTrust ends trust if err matches ErrSessionLost, before the caller waits for n.mu. It
// returns err.
func (s *session) endTrust(err error) error {
	if errors.Is(err, ErrSessionLost) {
		_ = s.trust.end(s.endCause(err))
	}
	return err
}

// endCause returns the cause of the end of the terms when the session ends with
// err.
func (s *session) endCause(err error) error {
	if !s.trust.valid() && !errors.Is(err, ErrConnection) {
		err = withDetail(ErrTrustExpired, err)
	}
	if !errors.Is(err, ErrTermEnded) {
		err = withDetail(ErrSessionLost, err)
	}
	return err
}

// endLocked gives up the session: it ends trust, cancels the contexts of its
// terms, and then notifies the elections. The connection stays open until the
// work has returned.
func (s *session) endLocked(err error) {
	if s.ended {
		return
	}
	cause := s.trust.end(s.endCause(err)) // the cause of an earlier end, if there was one
	n := s.node
	s.ended = true
	if n.session == s {
		n.session = nil
	}
	s.endTermsLocked(cause)
	s.endAttemptsLocked(cause)
	s.failCallsLocked(withDetail(ErrSessionLost, cause))
	s.checkIdleLocked()
	n.fellSilent = errors.Is(cause, ErrTrustExpired)
	n.lastSessionEnd = clocks.Instant{}
	if errors.Is(cause, ErrConnection) && !timedOut(cause) {
		n.lastSessionEnd = n.clock.Now()
	}
	if !s.leaving {
		n.log.Warn("session ended", "incarnation", s.conn.Incarnation(), "error", cause)
	}
	now := len(s.terms) == 0 || errors.Is(cause, ErrConnection) // no work, or the locks are gone already
	n.group.Add(1)
	go s.closeWhenIdle(now) // exits when the work has returned; Close waits through n.group
	s.wakeLocked()
	n.notifySubscribersLocked()
}

// endTermsLocked ends the terms of an ended session. If the work of a term has returned,
// it drops the term and its lock; advanceLocked drops the others later.
func (s *session) endTermsLocked(cause error) {
	queued := slices.Concat(s.releaseBatch, s.releases)
	s.releases, s.releaseBatch = nil, nil
	terms := slices.Collect(maps.Keys(s.terms))
	for _, t := range terms {
		if t.election.State() == Releasing {
			t.releaseErr = fmt.Errorf("release %s: %w", t.Role(), cause)
		}
		t.endLocked(cause)
	}
	for _, r := range queued {
		s.dropRoleLocked(r)
	}
	for _, t := range terms { // in a second loop: transitions must find all terms ended
		if e := t.election; e.State() == Releasing {
			e.stepLocked(fsm.DbError, t, cause)
		} else {
			e.stepLocked(fsm.HealthFailed, t, cause)
		}
	}
}

// timedOut reports whether err is a timeout. After a timeout, the server may not know yet
// about the end of the connection.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// endAttemptsLocked fails the attempts of the session.
func (s *session) endAttemptsLocked(cause error) {
	for _, e := range s.acquireBatch {
		e.attempt.inFlight, e.attempt.pending = false, false
		e.wakeLocked()
	}
	s.acquireBatch = nil
	for e := range s.node.followers {
		e.attempt.pending, e.attempt.fencedSince = false, 0
		if e.State() == Acquiring {
			e.attempt.updateCause(cause)
			e.stepLocked(fsm.DbError, nil, cause)
		}
	}
}

// closeWhenIdle closes the connection, now or when all work has returned. It
// lets the node open its next session immediately.
func (s *session) closeWhenIdle(now bool) {
	defer s.node.group.Done()
	if now {
		s.step(steps.Closes, "", 0)
		s.conn.Abort()
		close(s.lost)
		return
	}
	close(s.lost)
	select {
	case <-s.idle:
		s.step(steps.Closes, "", 0)
	case <-s.node.abandonWork:
		s.forcesClose()
	}
	s.conn.Abort()
}

// checkIdleLocked closes s.idle if the session has ended and has no terms left.
func (s *session) checkIdleLocked() {
	if s.ended && len(s.terms) == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// endedIncarnationLocked returns the incarnation of the last session if the work of its
// terms has returned, or 0. After a restart of the server, other nodes can begin new terms
// earlier if they need not wait for this session.
func (n *Node) endedIncarnationLocked() int64 {
	for _, e := range n.elections {
		if e.term != nil {
			return 0
		}
	}
	return n.lastIncarnation
}

// dropRoleLocked drops a role after its lock was released or lost with the session.
func (s *session) dropRoleLocked(r release) {
	e := r.election
	if r.term == nil {
		e.attempt.unlocking = false
	} else {
		delete(s.terms, r.term)
		if e.term == r.term {
			e.term = nil
		}
		e.dampTakeOverLocked(r.term)
		e.disputeLocked(r.term)
		r.term.setReleasedLocked()
		e.leaveRoomLocked()
		s.checkIdleLocked()
		s.node.wakeSessionLocked()
	}
	e.wakeLocked()
}

// failCallsLocked returns err to every caller waiting for the session, also if its
// statement still runs. The connection stays open until the work has returned, and the
// caller may be the work.
func (s *session) failCallsLocked(err error) {
	s.answerLocked(err)
	for _, done := range s.heartbeatWaiters {
		done <- err
	}
	for _, c := range s.calls {
		c.result <- err
	}
	for _, written := range s.descriptionWaiters {
		written <- err
	}
	s.heartbeatWaiters, s.calls, s.descriptionWaiters = nil, nil, nil
}
