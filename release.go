package tenure

import (
	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/steps"
)

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
