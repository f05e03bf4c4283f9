package sim

import (
	"errors"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steps"
)

// heldRole is a role whose lock a session holds.
type heldRole struct {
	term  int64 // 0 while Waiting
	since time.Duration
}

// TryAcquire implements tenure.Session: it locks the roles that are not held yet,
// closes the terms of their previous holders, and begins new terms. Each step is a
// separate statement.
func (s *session) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	attempts := make([]tenure.AcquireResult, len(candidates))
	if err := s.lock(candidates, attempts); err != nil {
		return nil, err
	}
	var places []int // indexes in candidates of the roles to lock
	var roles []tenure.Role
	var since []time.Duration
	for i, attempt := range attempts {
		if attempt.Outcome == tenure.OutcomePending {
			places = append(places, i)
			roles = append(roles, candidates[i].Role)
			since = append(since, s.roles[candidates[i].Role.Name()].since)
		}
	}
	if len(roles) == 0 {
		return attempts, nil
	}
	var begun []tenure.AcquireResult
	err := s.call("close terms", func(b *backend) error {
		b.closeTerms(roles)
		return nil
	})
	if err == nil {
		err = s.call("begin terms", func(b *backend) error {
			begun = b.beginTerms(roles, since)
			return nil
		})
	}
	switch {
	case errors.Is(err, tenure.ErrSessionLost):
		return nil, err
	case err != nil: // rolled back; the locks are still held
		for _, i := range places {
			attempts[i].RetryIn = s.opening.Timing.RefreshInterval / 2
		}
		return attempts, nil
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for k, i := range places {
		attempts[i] = begun[k]
		if begun[k].Outcome == tenure.OutcomeGranted {
			s.roles[roles[k].Name()].term = begun[k].Term
		}
	}
	return attempts, nil
}

// lock acquires the locks of the candidates that this session does not hold, and
// fills in the attempts: OutcomePending for each role that it now holds.
func (s *session) lock(candidates []tenure.AcquireRequest, attempts []tenure.AcquireResult) error {
	var fresh []tenure.AcquireRequest
	var places []int
	s.world.mu.Lock()
	for i, c := range candidates {
		switch held := s.roles[c.Role.Name()]; {
		case held == nil:
			fresh, places = append(fresh, c), append(places, i)
		case held.term == 0:
			attempts[i].Outcome = tenure.OutcomePending
		default:
			s.world.checker.acquiredTwice(s, c.Role.Name())
		}
	}
	s.world.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	var tried []tenure.AcquireResult
	var now time.Duration
	err := s.call("lock", func(b *backend) error {
		tried, now = b.tryRoles(fresh), s.world.now()
		return nil
	})
	if err != nil {
		return err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for k, i := range places {
		attempts[i] = tried[k]
		if tried[k].Outcome == tenure.OutcomePending {
			s.roles[fresh[k].Role.Name()] = &heldRole{since: now}
		}
	}
	return nil
}

// Release implements tenure.Session: first the record, then the lock, then the notification.
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	s.world.mu.Lock()
	s.world.checker.releasing(s, releases)
	s.world.mu.Unlock()
	err := s.call("end terms", func(b *backend) error {
		b.endTerms(releases)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.call("unlock", func(b *backend) error {
		for _, r := range releases {
			b.server.unlock(b, b.roleLock(r.Role))
			b.roleStep(steps.Unlocks, r.Role.Name(), 0)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.world.mu.Lock()
	for _, r := range releases {
		delete(s.roles, r.Role.Name())
	}
	s.world.mu.Unlock()
	err = s.notifyReleased()
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	return nil // the resignation is valid without the notification
}
