package tenure

import (
	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/steps"
)

// release is a role to release: a term, or a lock without a term.
type release struct {
	election *Election
	term     *Term // nil for a lock whose term has not begun
	number   int64
}

// queueReleaseLocked queues the release of a term after its trust has ended and its work
// has returned. If the session has ended, it drops the role: the lock is lost with the
// connection.
func (s *session) queueReleaseLocked(t *Term) {
	r := release{election: t.election, term: t, number: t.number}
	if s.ended {
		s.dropRoleLocked(r)
		return
	}
	s.releases = append(s.releases, r)
	s.wakeLocked()
}

// queueUnlockLocked queues the release of a lock without a term: its election
// has stopped, or the term could not begin in time.
func (s *session) queueUnlockLocked(e *Election, number int64) {
	e.attempt.unlocking = true
	s.releases = append(s.releases, release{election: e, number: number})
	s.wakeLocked()
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

// release sends all queued releases in one call.
func (s *session) release() error {
	n := s.node
	n.mu.Lock()
	s.releaseBatch, s.releases = s.releases, nil
	batch := make([]ReleaseRequest, len(s.releaseBatch))
	for i, r := range s.releaseBatch {
		batch[i] = ReleaseRequest{Role: r.election.role, Term: r.number, Reason: endreason.Resigned}
		s.sends(steps.Releases, r.election.role.Name(), r.number)
		if r.term == nil {
			continue
		}
		var planned termEnd
		if r.term.stopRequested {
			planned = *r.term.plannedEnd
		}
		batch[i].Reason, batch[i].By = planned.reason, planned.by
		batch[i].Cause, batch[i].NextIn = planned.detail, planned.nextIn
		if planned.reason == endreason.HandedOver {
			batch[i].Target, batch[i].Reservation = planned.target, n.cfg.CheckInterval
		}
	}
	n.mu.Unlock()
	err := s.conn.Release(batch)
	if err != nil {
		err = s.endTrust(withDetail(ErrSessionLost, err)) // a lock may still be held
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.ended || err != nil {
		return err
	}
	released := s.releaseBatch
	s.releaseBatch = nil
	for _, r := range released {
		s.dropRoleLocked(r)
		if r.term != nil {
			r.election.stepLocked(fsm.ReleaseSucceeded, r.term, nil)
		}
	}
	return nil
}
