package sim

import (
	"github.com/exactly-one/tenure"
)

// takeWhileDraining tries once more to acquire the roles that the node did not get,
// after the node has reported that it drains.
func takeWhileDraining(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &greedySession{registering: s}
}

type greedySession struct {
	registering
	missed []tenure.AcquireRequest
}

func (s *greedySession) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	attempts, err := s.registering.TryAcquire(candidates)
	s.missed = nil
	for i, attempt := range attempts {
		if attempt.Outcome == tenure.OutcomeHeld {
			s.missed = append(s.missed, candidates[i])
		}
	}
	return attempts, err
}

func (s *greedySession) WriteDescription(description tenure.Description) error {
	err := s.registering.WriteDescription(description)
	if err == nil && !description.Status.AcceptsWork() {
		_, err = s.TryAcquire(s.missed)
	}
	return err
}

// drainedEarly reports a node as drained as soon as it begins to drain.
func drainedEarly(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &boastfulSession{s}
}

type boastfulSession struct{ registering }

func (s *boastfulSession) WriteDescription(description tenure.Description) error {
	description.Drained = description.Status == tenure.StatusDraining
	return s.registering.WriteDescription(description)
}

// readOnce never reads the registry a second time.
func readOnce(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &forgetfulSession{registering: s}
}

type forgetfulSession struct {
	registering
	read []tenure.Member
}

func (s *forgetfulSession) Members() (_ []tenure.Member, err error) {
	if s.read == nil {
		s.read, err = s.registering.Members()
	}
	return append([]tenure.Member(nil), s.read...), err
}

// hideHolders reports to members that share roles that all roles are vacant, so that
// they place all of them again whenever a node joins.
func hideHolders(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &obliviousSession{s}
}

type obliviousSession struct{ registering }

func (s *obliviousSession) Holders([]string) ([]tenure.RoleHolder, error) { return nil, nil }
