package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/history"
)

// Engines and databases that are broken on purpose. Each must be caught, and by
// the invariant that it breaks: otherwise the schedules prove nothing.
var mutations = []struct {
	name       string
	invariants []int // that may be the first to be seen broken
	schedule   Schedule
	within     int // seeds
}{
	{"trust measured from the reply", []int{1}, Schedule{Wrap: wrapping(trustFromReply)}, 400},
	{"trust extended before the reply", []int{1}, Schedule{Wrap: wrapping(trustBeforeReply)}, 400},
	{"trust extended by a failed heartbeat", []int{1}, Schedule{Wrap: wrapping(trustFailure)}, 400},
	{"contexts canceled late", []int{1}, Schedule{Wrap: lateTimers}, 400},
	{"release before the work ends", []int{4}, Schedule{Wrap: wrapping(releaseEarly)}, 100},
	{"a deadline closes the connection", []int{1, 4}, Schedule{Wrap: wrapping(deadlineCloses)}, 100},
	{"terms are counted", []int{2}, Schedule{Defects: Defects{CountTerms: true}}, 100},
	{"numbers of terms repeat", []int{2}, Schedule{Defects: Defects{RepeatTerms: true}}, 100},
	{"no wait on another server", []int{1}, Schedule{Defects: Defects{NoServerLag: true}}, 400},
	{"a wait that each candidate begins anew", []int{7}, Schedule{Defects: Defects{WaitAnew: true}}, 400},
	{"a wait that begins too early", []int{1}, Schedule{Defects: Defects{WaitEarly: true}}, 400},
	{"a reunion that misses nodes", []int{1}, Schedule{Defects: Defects{NoReunion: true}}, 400},
	{"a reunion without nodes that were found dead", []int{1}, Schedule{Defects: Defects{DeadReunion: true}}, 400},
	{"a reunion on an asynchronous replica", []int{1}, Schedule{Defects: Defects{AnyReunion: true}}, 400},
	{"a reunion that trusts the clock of a promoted standby", []int{2}, Schedule{Seed: 600, Defects: Defects{AnyClock: true}}, 400},
	{"no wait for the node of the last recorded term", []int{1}, Schedule{Defects: Defects{LastHolder: true}}, 400},
	{"fenced transactions hold nothing off", []int{3}, Schedule{Defects: Defects{NoFence: true}}, 100},
	{"a commit that was not answered counts as rolled back", []int{appliedOnce}, Schedule{Defects: Defects{NoCompare: true, NoSettle: true}}, 400},
	{"an installation made under living sessions", []int{1}, Schedule{Defects: Defects{NoInstallationLock: true}}, 400},
	{"a renewal locks again", []int{5}, Schedule{Defects: Defects{Relock: true}}, 10},
	{"sessions that the reaper spares", []int{7}, Schedule{Defects: Defects{NoReaper: true}}, 400},
	{"a death that no node sees", []int{7}, Schedule{Defects: Defects{UnnoticedDeaths: true}}, 400},
	{"heartbeats of a false clock that stay", []int{7}, Schedule{Seed: 200, ServerClock: true, Defects: Defects{FalseTimes: true}}, 400},
	{"reservations of a false clock that stay", []int{7}, Schedule{Seed: 600, ServerClock: true, Defects: Defects{FalseReservations: true}}, 400},
	{"a start under a false clock that is to come", []int{7}, Schedule{ServerClock: true, Defects: Defects{FalseStart: true}}, 400},
	{"dead nodes whose sessions are hidden", []int{7}, Schedule{Defects: Defects{DeadHidden: true}}, 400},
	{"a stalled watch that no node notices", []int{7}, Schedule{Seed: 5500, Defects: Defects{StalledWatch: true}}, 400},
	{"heartbeats that do not look for silent nodes", []int{7}, Schedule{Seed: 1500, Defects: Defects{HeartbeatsDoNotLook: true}}, 400},
	{"wakings that are lost", []int{7}, Schedule{Wrap: wrapping(sleepThrough)}, 400},
	{"a draining node takes a role", []int{serversLead}, Schedule{Wrap: wrapping(takeWhileDraining)}, 400},
	{"drained before the roles are free", []int{serversLead}, Schedule{Wrap: wrapping(drainedEarly)}, 100},
	{"no node sees a node die", []int{registryTrue, 7}, Schedule{Cluster: true, Defects: Defects{UnnoticedDeaths: true}}, 100},
	{"a new status is not published", []int{registryTrue}, Schedule{Cluster: true, Defects: Defects{SilentChanges: true}}, 100},
	{"the registry is read once", []int{registryTrue}, Schedule{Cluster: true, Wrap: wrapping(readOnce)}, 10},
	{"who leads is not known", []int{fairShares}, Schedule{Cluster: true, Wrap: wrapping(hideHolders)}, 40},
}

func TestMutationsAreDetected(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.schedule.Oracles = InvariantsOnly // TestReplayNamesBrokenRules has the other one
			for range m.within {
				m.schedule.Seed++
				result := run(t, m.schedule)
				if result.Violation == nil {
					continue
				}
				for _, invariant := range m.invariants {
					if result.Violation.Invariant == invariant {
						t.Logf("seed %d: %v", m.schedule.Seed, result.Violation)
						return
					}
				}
				t.Fatalf("seed %d: another invariant than expected is broken: %v", m.schedule.Seed, result.Violation)
			}
			t.Errorf("not caught in %d schedules", m.within)
		})
	}
}

// wrapping makes a Schedule.Wrap of a function that wraps one session.
func wrapping(wrap func(registering, tenure.SessionOptions, *Clock) tenure.Session) func(cluster.Store, *Clock) cluster.Store {
	return func(b cluster.Store, clock *Clock) cluster.Store { return &wrapped{b, clock, wrap} }
}

type wrapped struct {
	cluster.Store
	clock *Clock
	wrap  func(registering, tenure.SessionOptions, *Clock) tenure.Session
}

func (w *wrapped) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := w.Store.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return w.wrap(session.(registering), opening, w.clock), nil
}

// registering is what every session of the simulated database is.
type registering interface {
	tenure.Session
	tenure.RegistrySession
}

// trustFromReply sets the node's clocks back by the time that each heartbeat
// took: what was sent at t now seems to have been sent when the answer came.
func trustFromReply(s registering, _ tenure.SessionOptions, clock *Clock) tenure.Session {
	return &repliedSession{s, clock}
}

type repliedSession struct {
	registering
	clock *Clock
}

func (s *repliedSession) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	sent := s.clock.Now()
	pending, err := s.registering.Heartbeat(load)
	if err == nil {
		took := s.clock.Now().Mono - sent.Mono
		s.clock.step(-took, -took)
	}
	return pending, err
}

// trustBeforeReply takes every heartbeat for acknowledged when it is sent.
func trustBeforeReply(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &hopefulSession{registering: s}
}

type hopefulSession struct {
	registering
	pending chan struct{} // closed when the last heartbeat was answered
}

func (s *hopefulSession) await() {
	if s.pending != nil {
		<-s.pending
	}
}

func (s *hopefulSession) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	s.await()
	pending := make(chan struct{})
	s.pending = pending
	go func() { // ends with the answer, or with Abort
		defer close(pending)
		_, _ = s.registering.Heartbeat(load)
	}()
	return false, nil
}

func (s *hopefulSession) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	s.await()
	return s.registering.TryAcquire(candidates)
}

func (s *hopefulSession) Release(releases []tenure.ReleaseRequest) error {
	s.await()
	return s.registering.Release(releases)
}

func (s *hopefulSession) Requests() ([]tenure.Request, error) {
	s.await()
	return s.registering.Requests()
}

func (s *hopefulSession) WriteDescription(description tenure.Description) error {
	s.await()
	return s.registering.WriteDescription(description)
}

func (s *hopefulSession) Wait(ctx context.Context) (bool, error) {
	s.await()
	return s.registering.Wait(ctx)
}

func (s *hopefulSession) Close() error {
	s.await()
	return s.registering.Close()
}

// trustFailure takes a heartbeat that failed for one that was acknowledged.
func trustFailure(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &carelessSession{s}
}

type carelessSession struct{ registering }

func (s *carelessSession) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	pending, err := s.registering.Heartbeat(load)
	if err != nil && !errors.Is(err, tenure.ErrSessionLost) {
		err = nil
	}
	return pending, err
}

// lateTimers makes every timer of a node late: IsLeader answers correctly, but the
// contexts of its terms outlive them.
func lateTimers(b cluster.Store, clock *Clock) cluster.Store {
	clock.mu.Lock()
	defer clock.mu.Unlock()
	clock.late = 300 * time.Millisecond // Set by hand: this is the fault of the mutation.
	return b
}

// releaseEarly releases a role as soon as a request for that arrives, before the engine
// has ended the work.
func releaseEarly(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &hastySession{registering: s, terms: map[string]int64{}}
}

type hastySession struct {
	registering
	terms map[string]int64
}

func (s *hastySession) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	attempts, err := s.registering.TryAcquire(candidates)
	for i, a := range attempts {
		if a.Outcome == tenure.OutcomeGranted {
			s.terms[candidates[i].Role.Name()] = a.Term
		}
	}
	return attempts, err
}

func (s *hastySession) Requests() ([]tenure.Request, error) {
	requests, err := s.registering.Requests()
	for _, r := range requests {
		release := tenure.ReleaseRequest{Role: tenure.NamedRole(r.Role), Term: s.terms[r.Role], Reason: history.EndSteppedDown}
		if err := s.registering.Release([]tenure.ReleaseRequest{release}); err != nil {
			return nil, err
		}
	}
	return requests, err
}

// deadlineCloses gives every heartbeat a deadline that closes the connection, as
// a context does in common drivers.
func deadlineCloses(s registering, opening tenure.SessionOptions, clock *Clock) tenure.Session {
	return &impatientSession{s, opening.Timing.RefreshInterval / 4, clock}
}

type impatientSession struct {
	registering
	patience time.Duration
	clock    *Clock
}

func (s *impatientSession) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	defer s.clock.AfterFunc(s.patience, s.Abort)()
	return s.registering.Heartbeat(load)
}

// sleepThrough drops every notification to the engine.
func sleepThrough(s registering, _ tenure.SessionOptions, _ *Clock) tenure.Session {
	return &deafSession{s}
}

type deafSession struct{ registering }

func (s *deafSession) Wait(ctx context.Context) (bool, error) {
	_, err := s.registering.Wait(ctx)
	return false, err
}
