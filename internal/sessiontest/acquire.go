package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
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
	b.tryHeld(role)
	b.lead(tenure.NamedRole("another"))
}

func order(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	free1, held, free2 := tenure.NamedRole("z"), tenure.NamedRole("m"), tenure.NamedRole("a")
	a.lead(held)
	results := b.tryAll(free1, held, free2)
	for i, want := range []tenure.Outcome{tenure.OutcomeGranted, tenure.OutcomeHeld, tenure.OutcomeGranted} {
		if results[i].Outcome != want {
			s.Errorf("result %d: got %+v, want outcome %d", i, results[i], want)
		}
	}
	if results := b.tryAll(); len(results) != 0 {
		s.Errorf("no requests: got %d results", len(results))
	}
}

func batch(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	roles := make([]tenure.Role, 200)
	for i := range roles {
		roles[i] = tenure.NamedRole(fmt.Sprintf("role-%03d", i))
	}
	releases := make([]tenure.ReleaseRequest, len(roles))
	for i, result := range a.tryUntilDecided(roles...) {
		if result.Outcome != tenure.OutcomeGranted {
			s.Fatalf("%s: got %+v, want OutcomeGranted", roles[i], result)
		}
		releases[i] = tenure.ReleaseRequest{Role: roles[i], Term: result.Term, Reason: history.EndResigned}
	}
	for i, result := range b.tryUntilDecided(roles...) {
		if result.Outcome != tenure.OutcomeHeld {
			s.Fatalf("%s: got %+v, want OutcomeHeld", roles[i], result)
		}
	}
	a.release(releases...)
	for i, result := range b.tryUntilDecided(roles...) {
		if result.Outcome != tenure.OutcomeGranted || result.Term <= releases[i].Term {
			s.Fatalf("%s after term %d: got %+v, want OutcomeGranted with a higher term", roles[i], releases[i].Term, result)
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
	b.tryHeld(tenure.KeyRole(7))
	a.tryHeld(tenure.KeyPairRole(7, 0))
}

func keyMismatch(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	term := a.lead(tenure.NamedRole("r")).Term
	result := b.try(tenure.NamedRole("r").WithKey(4711))
	if result.Outcome != tenure.OutcomeFailed || !errors.Is(result.Err, tenure.ErrKeyMismatch) {
		s.Errorf("got %+v, want OutcomeFailed with ErrKeyMismatch", result)
	}
	a.resign(tenure.NamedRole("r"), term)
	result = b.try(tenure.NamedRole("r").WithKey(4711))
	if result.Outcome != tenure.OutcomeFailed || !errors.Is(result.Err, tenure.ErrKeyMismatch) {
		s.Errorf("when vacant: got %+v, want OutcomeFailed with ErrKeyMismatch", result)
	}
}

// termsIncrease checks invariant 2 (term numbers only increase) across resignations, lost
// sessions and new nodes.
func termsIncrease(s *suite) {
	role, last := tenure.NamedRole("r"), int64(0)
	grown := func(after string, result tenure.AcquireResult) {
		s.Helper()
		if result.Term <= last {
			s.Errorf("after %s: term %d follows term %d", after, result.Term, last)
		}
		last = result.Term
	}
	a := s.open("a", expiringTiming())
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
	grown("a node that returned", c.leadSoon(role))
}

func incarnationsIncrease(s *suite) {
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
	results, err := b.TryAcquire([]tenure.AcquireRequest{{Role: role, Recovering: true}})
	if err != nil || len(results) != 1 {
		s.Fatalf("TryAcquire: %d results, error %v", len(results), err)
	}
	if results[0].Outcome != tenure.OutcomeHeld || results[0].Holder != a.id {
		s.Errorf("got %+v, want OutcomeHeld with holder %s", results[0], a.id)
	}
}

func vacancy(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	first := a.lead(role)
	if first.PrecedingVacancy >= 0 || first.Previous != 0 {
		s.Errorf("the first term: vacancy of %v after term %d, want neither", first.PrecedingVacancy, first.Previous)
	}
	// One millisecond is allowed for rounding.
	if least := first.AcquiredAt.UnixMilli() - 1; first.Term < least {
		s.Errorf("term %d began at %v: want at least %d", first.Term, first.AcquiredAt, least)
	}
	a.resign(role, first.Term)
	// The vacancy began before Release returned and ended before the next request did.
	if second := b.lead(role); second.PrecedingVacancy < 0 || second.PrecedingVacancy > patience || second.Previous != first.Term {
		s.Errorf("after the resignation of term %d: vacancy of %v after term %d", first.Term, second.PrecedingVacancy, second.Previous)
	}
}

func openContext(s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	session, err := s.backend.Open(ctx, tenure.SessionOptions{
		Node: tenure.NodeInfo{Name: "late"}, Timing: timing(), Clock: clocks.System(),
		MaySend: func() bool { return true },
	})
	if err == nil {
		session.Abort()
		s.Error("Open with a context that has ended: no error")
	}
	a := s.open("a", timing()) // its context has ended by now
	a.lead(tenure.NamedRole("r"))
	if _, err := a.Heartbeat(tenure.Load{}); err != nil {
		s.Errorf("heartbeat after the end of Open's context: %v", err)
	}
}

// settling returns a session that holds the lock of a role without a term, because the
// last term ended uncleanly.
func (s *suite) settling(role tenure.Role, settle time.Duration) *node {
	s.Helper()
	slow := timing()
	slow.Settle = settle
	b := s.open("b", slow)
	a := s.open("a", expiringTiming())
	a.lead(role)
	a.Abort()
	var result tenure.AcquireResult
	s.eventually("the role is locked", func() bool {
		result = b.tryAgain(role)
		return result.Outcome != tenure.OutcomeHeld
	})
	if result.Outcome != tenure.OutcomePending {
		s.Fatalf("after an unclean end, with Settle: got %+v, want OutcomePending", result)
	}
	if result.RetryIn < 0 || result.RetryIn > settle {
		s.Errorf("RetryIn is %v, want at most %v", result.RetryIn, settle)
	}
	return b
}

// pending checks invariant 5 (a lock is acquired once): after many requests for a pending
// role, one release is enough.
func pending(s *suite) {
	role := tenure.NamedRole("r")
	const settle = time.Second
	began := time.Now()
	b := s.settling(role, settle)
	c := s.open("c", timing())
	c.tryHeld(role)
	granted := b.leadSoon(role)
	if waited := time.Since(began); waited < settle {
		s.Errorf("granted after %v, before Settle had passed", waited)
	}
	c.tryHeld(role)
	b.resign(role, granted.Term)
	c.lead(role)
}

func pendingReleased(s *suite) {
	role := tenure.NamedRole("r")
	b := s.settling(role, 5*time.Second)
	c := s.open("c", timing())
	c.tryHeld(role)
	b.resign(role, 0)
	if result := c.leadSoon(role); result.Term < 2 {
		s.Errorf("term %d: want a higher one than the first", result.Term)
	}
}

func reservation(s *suite) {
	a, b, c, role := s.open("a", timing()), s.open("b", timing()), s.open("c", timing()), tenure.NamedRole("r")
	a.release(tenure.ReleaseRequest{
		Role: role, Term: a.lead(role).Term, Reason: history.EndHandedOver, Target: b.id, Reservation: patience,
	})
	if result := c.tryHeld(role); result.RetryIn <= 0 || result.RetryIn > patience {
		s.Errorf("a reserved role: RetryIn is %v, want at most %v", result.RetryIn, patience)
	}
	if result := a.tryHeld(role); result.RetryIn <= 0 {
		s.Errorf("the old leader of a reserved role: RetryIn is %v", result.RetryIn)
	}
	granted := b.lead(role)
	b.resign(role, granted.Term)
	c.lead(role) // the reservation applied to one term only
}

func reservationExpires(s *suite) {
	a, b, c, role := s.open("a", timing()), s.open("b", timing()), s.open("c", timing()), tenure.NamedRole("r")
	a.release(tenure.ReleaseRequest{
		Role: role, Term: a.lead(role).Term, Reason: history.EndHandedOver, Target: b.id, Reservation: 5 * time.Second,
	})
	c.tryHeld(role)
	c.leadSoon(role)
}

func yield(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	first := a.lead(role).Term
	again := tenure.AcquireRequest{Role: role, YieldTerm: first, YieldFor: patience}
	left := func() {
		s.Helper()
		if result := a.request(again)[0]; result.Outcome != tenure.OutcomeHeld || result.RetryIn <= 0 || result.RetryIn > patience {
			s.Errorf("a role that is left to others: got %+v, want OutcomeHeld with RetryIn of at most %v", result, patience)
		}
	}
	granted := func(when string) int64 {
		s.Helper()
		result := a.request(again)[0]
		if result.Outcome != tenure.OutcomeGranted {
			s.Fatalf("%s: got %+v, want OutcomeGranted", when, result)
		}
		return result.Term
	}
	a.resign(role, first)
	left()
	left()
	b.resign(role, b.lead(role).Term)
	second := granted("after the term of another node")
	a.release(tenure.ReleaseRequest{
		Role: role, Term: second, Reason: history.EndHandedOver, Target: a.id, Reservation: patience,
	})
	again.YieldTerm = second
	a.resign(role, granted("while it is reserved for this node"))
}
