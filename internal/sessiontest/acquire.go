package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

func exclusion(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	granted := a.lead(role)
	if granted.Term < 1 {
		s.Errorf("term %d: want a positive number", granted.Term)
	}
	if granted.AcquiredAt.IsZero() {
		s.Error("AcquiredAt is not set")
	}
	b.refused(role)
	b.lead(tenure.NamedRole("another"))
}

func order(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	free1, held, free2 := tenure.NamedRole("z"), tenure.NamedRole("m"), tenure.NamedRole("a")
	a.lead(held)
	attempts := b.tryAll(free1, held, free2)
	for i, want := range []tenure.Outcome{tenure.OutcomeGranted, tenure.OutcomeHeld, tenure.OutcomeGranted} {
		if attempts[i].Outcome != want {
			s.Errorf("attempt %d: got %+v, want outcome %d", i, attempts[i], want)
		}
	}
	if attempts := b.tryAll(); len(attempts) != 0 {
		s.Errorf("no candidates: got %d attempts", len(attempts))
	}
}

func batch(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	roles := make([]tenure.Role, 200)
	for i := range roles {
		roles[i] = tenure.NamedRole(fmt.Sprintf("role-%03d", i))
	}
	releases := make([]tenure.ReleaseRequest, len(roles))
	for i, attempt := range a.finish(roles...) {
		if attempt.Outcome != tenure.OutcomeGranted {
			s.Fatalf("%s: got %+v, want it Granted", roles[i], attempt)
		}
		releases[i] = tenure.ReleaseRequest{Role: roles[i], Term: attempt.Term, Reason: tenure.EndResigned}
	}
	for i, attempt := range b.finish(roles...) {
		if attempt.Outcome != tenure.OutcomeHeld {
			s.Fatalf("%s: got %+v, want it Busy", roles[i], attempt)
		}
	}
	a.release(releases...)
	for i, attempt := range b.finish(roles...) {
		if attempt.Outcome != tenure.OutcomeGranted || attempt.Term <= releases[i].Term {
			s.Fatalf("%s after term %d: got %+v, want a larger term Granted", roles[i], releases[i].Term, attempt)
		}
	}
}

func keys(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.lead(tenure.KeyRole(7))
	a.lead(tenure.NamedRole("7"))
	b.lead(tenure.KeyPairRole(0, 7))
	b.lead(tenure.KeyPairRole(7, 0))
	b.lead(tenure.KeyRole(-7))
	b.refused(tenure.KeyRole(7))
	a.refused(tenure.KeyPairRole(7, 0))
}

func keyMismatch(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	term := a.lead(tenure.NamedRole("r")).Term
	attempt := b.try(tenure.NamedRole("r").WithKey(4711))
	if attempt.Outcome != tenure.OutcomeFailed || !errors.Is(attempt.Err, tenure.ErrKeyMismatch) {
		s.Errorf("got %+v, want it Failed with ErrKeyMismatch", attempt)
	}
	a.resign(tenure.NamedRole("r"), term)
	attempt = b.try(tenure.NamedRole("r").WithKey(4711))
	if attempt.Outcome != tenure.OutcomeFailed || !errors.Is(attempt.Err, tenure.ErrKeyMismatch) {
		s.Errorf("when vacant: got %+v, want it Failed with ErrKeyMismatch", attempt)
	}
}

// termsGrow checks invariant 2 over resignations, lost sessions and new nodes.
func termsGrow(s *suite) {
	role, last := tenure.NamedRole("r"), int64(0)
	grown := func(after string, attempt tenure.AcquireResult) {
		s.Helper()
		if attempt.Term <= last {
			s.Errorf("after %s: term %d follows term %d", after, attempt.Term, last)
		}
		last = attempt.Term
	}
	a := s.open("a", mortal())
	grown("nothing", a.lead(role))
	a.resign(role, last)
	grown("a resignation", a.lead(role))
	a.Abort()
	b := s.open("b", timing())
	grown("a lost session", b.leadSoon(role))
	b.resign(role, last)
	if err := b.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	c := s.reopen(a.id, "a", timing())
	grown("a node that came back", c.leadSoon(role))
}

func incarnationsGrow(s *suite) {
	last := int64(0)
	a := s.open("a", timing())
	b := s.open("b", timing())
	a.Abort()
	for _, n := range []*node{a, b, s.reopen(a.id, "a", timing()), s.open("c", timing())} {
		if n.Incarnation() <= last {
			s.Errorf("incarnation %d follows %d", n.Incarnation(), last)
		}
		last = n.Incarnation()
	}
}

func recovering(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	a.lead(role)
	attempts, err := b.TryAcquire([]tenure.AcquireRequest{{Role: role, Recovering: true}})
	if err != nil || len(attempts) != 1 {
		s.Fatalf("TryAcquire: %d attempts, error %v", len(attempts), err)
	}
	if attempts[0].Outcome != tenure.OutcomeHeld || attempts[0].Holder != a.id {
		s.Errorf("got %+v, want it Busy with holder %s", attempts[0], a.id)
	}
}

func vacancy(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	first := a.lead(role)
	if first.PrecedingVacancy >= 0 || first.Previous != 0 {
		s.Errorf("nobody has ever led: vacant for %v after term %d, want neither", first.PrecedingVacancy, first.Previous)
	}
	// A millisecond for what is rounded.
	if least := first.AcquiredAt.UnixMilli() - 1; first.Term < least {
		s.Errorf("term %d began at %v: want at least %d", first.Term, first.AcquiredAt, least)
	}
	a.resign(role, first.Term)
	// What the database calls a vacancy began before Release returned and ended
	// before the next attempt did.
	if second := b.lead(role); second.PrecedingVacancy < 0 || second.PrecedingVacancy > patience || second.Previous != first.Term {
		s.Errorf("after the resignation of term %d: vacant for %v after term %d", first.Term, second.PrecedingVacancy, second.Previous)
	}
}

func openContext(s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	session, err := s.backend.Open(ctx, tenure.SessionOptions{
		Node: tenure.NodeInfo{Name: "late"}, Timing: timing(), Clock: tenure.SystemClock(),
		MaySend: func() bool { return true },
	})
	if err == nil {
		session.Abort()
		s.Error("Open with a context that has ended: no error")
	}
	a := s.open("a", timing()) // with a context that has ended by now
	a.lead(tenure.NamedRole("r"))
	if _, err := a.Heartbeat(tenure.Load{}); err != nil {
		s.Errorf("heartbeat after the end of Open's context: %v", err)
	}
}

// settling has a session hold a role's lock without a term for a while: its
// predecessor's end was not clean.
func (s *suite) settling(role tenure.Role, settle time.Duration) *node {
	s.Helper()
	slow := timing()
	slow.Settle = settle
	b := s.open("b", slow)
	a := s.open("a", mortal())
	a.lead(role)
	a.Abort()
	var attempt tenure.AcquireResult
	s.eventually("the role is locked", func() bool {
		attempt = b.tryAgain(role)
		return attempt.Outcome != tenure.OutcomeHeld
	})
	if attempt.Outcome != tenure.OutcomePending {
		s.Fatalf("after an unclean end, with a time to settle: got %+v, want it Waiting", attempt)
	}
	if attempt.RetryIn < 0 || attempt.RetryIn > settle {
		s.Errorf("RetryIn is %v, want at most %v", attempt.RetryIn, settle)
	}
	return b
}

// waiting checks invariant 5 from outside: after a wait with many attempts one
// release frees the role.
func waiting(s *suite) {
	role := tenure.NamedRole("r")
	began := time.Now()
	b := s.settling(role, 400*time.Millisecond)
	c := s.open("c", timing())
	c.refused(role)
	granted := b.leadSoon(role)
	if waited := time.Since(began); waited < 400*time.Millisecond {
		s.Errorf("granted after %v, before the time to settle was over", waited)
	}
	c.refused(role)
	b.resign(role, granted.Term)
	c.lead(role)
}

func waitingReleased(s *suite) {
	role := tenure.NamedRole("r")
	b := s.settling(role, 5*time.Second)
	c := s.open("c", timing())
	c.refused(role)
	b.resign(role, 0)
	if attempt := c.leadSoon(role); attempt.Term < 2 {
		s.Errorf("term %d: want a larger one than the first", attempt.Term)
	}
}

func reservation(s *suite) {
	a, b, c, role := s.open("a", timing()), s.open("b", timing()), s.open("c", timing()), tenure.NamedRole("r")
	a.release(tenure.ReleaseRequest{
		Role: role, Term: a.lead(role).Term, Reason: tenure.EndHandedOver, Target: b.id, Reservation: patience,
	})
	if attempt := c.refused(role); attempt.RetryIn <= 0 || attempt.RetryIn > patience {
		s.Errorf("a reserved role: RetryIn is %v, want at most %v", attempt.RetryIn, patience)
	}
	if attempt := a.refused(role); attempt.RetryIn <= 0 {
		s.Errorf("a role reserved by oneself for another: RetryIn is %v", attempt.RetryIn)
	}
	granted := b.lead(role)
	b.resign(role, granted.Term)
	c.lead(role) // the reservation was good for one term
}

func reservationLapses(s *suite) {
	a, b, c, role := s.open("a", timing()), s.open("b", timing()), s.open("c", timing()), tenure.NamedRole("r")
	a.release(tenure.ReleaseRequest{
		Role: role, Term: a.lead(role).Term, Reason: tenure.EndHandedOver, Target: b.id, Reservation: 5 * time.Second,
	})
	c.refused(role)
	c.leadSoon(role)
}
