package tenure

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/exactly-one/tenure/internal/fsm"
)

// expire ends the session when the deadline of trust has passed: first trust
// and the contexts, for which the mutex is not needed, then the rest.
func (s *session) expire() {
	_ = s.trust.end(ErrTrustExpired)
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.started {
		s.endLocked(ErrTrustExpired)
	}
}

// fail gives up the session after an error, as expire does.
func (s *session) fail(err error) {
	_ = s.trust.end(s.endCause(err))
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.endLocked(err)
}

// endTrust ends trust if an answer of the connection says that the session is
// lost, before the mutex is waited for. It returns the error.
func (s *session) endTrust(err error) error {
	if errors.Is(err, ErrSessionLost) {
		_ = s.trust.end(s.endCause(err))
	}
	return err
}

// endCause is why terms end when the session ends with an error.
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
	cause := s.trust.end(s.endCause(err)) // that of an earlier end, if there was one
	n := s.node
	s.ended = true
	if n.session == s {
		n.session = nil
	}
	s.endTermsLocked(cause)
	s.endAttemptsLocked(cause)
	s.failCallsLocked(cause)
	s.checkIdleLocked()
	n.lastSessionEnd = Instant{}
	if errors.Is(cause, ErrConnection) && !timedOut(cause) {
		n.lastSessionEnd = n.clock.Now()
	}
	if !s.leaving {
		n.log.Warn("session ended", "incarnation", s.conn.Incarnation(), "error", cause)
	}
	now := len(s.terms) == 0 || errors.Is(cause, ErrConnection) // no work, or no locks any more
	n.group.Add(1)
	go s.closeWhenIdle(now) // ends when the work has returned; Close waits for it
	s.wakeLocked()
	n.notifySubscribersLocked()
}

// endTermsLocked ends the terms of a session that is over. A term whose work has
// returned is dropped with its lock; the others follow when theirs does.
func (s *session) endTermsLocked(cause error) {
	queued := slices.Concat(s.releaseBatch, s.releases)
	s.releases, s.releaseBatch = nil, nil
	terms := slices.Collect(maps.Keys(s.terms))
	for _, t := range terms {
		if t.election.State() == Releasing {
			t.releaseErr = fmt.Errorf("releasing %s: %w", t.Role(), cause)
		}
		t.endLocked(cause)
	}
	for _, r := range queued {
		s.dropRoleLocked(r)
	}
	for _, t := range terms { // only now: a transition finds all terms of the session ended
		if e := t.election; e.State() == Releasing {
			e.stepLocked(fsm.DbError, t, cause)
		} else {
			e.stepLocked(fsm.HealthFailed, t, cause)
		}
	}
}

// timedOut reports that the other side of a connection did not answer: it may not
// know that the connection is over.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// endAttemptsLocked fails the attempts that the session was making.
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

// closeWhenIdle closes the connection, now or when all work has returned, and lets
// the node open its next session at once.
func (s *session) closeWhenIdle(now bool) {
	defer s.node.group.Done()
	if now {
		s.conn.Abort()
		close(s.lost)
		return
	}
	close(s.lost)
	select {
	case <-s.idle:
	case <-s.node.abandonWork:
	}
	s.conn.Abort()
}

// checkIdleLocked notices when the last work under a lost session has returned.
func (s *session) checkIdleLocked() {
	if s.ended && len(s.terms) == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}
