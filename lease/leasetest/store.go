package leasetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/lease/store"
)

// Windows of the tests: one that does not expire during a test, and one that does.
const (
	long  = 10 * time.Minute
	short = 2 * time.Second
)

// patience is how long the suite waits for a condition.
const patience = 40 * time.Second

type storeTest struct {
	name   string
	window time.Duration
	run    func(*storeSuite)
}

var storeTests = []storeTest{
	{"the first candidate leads", long, firstCandidate},
	{"Elect returns the lease of another leader", long, otherLeader},
	{"a renewal keeps the term", long, renewal},
	{"another candidate acquires an expired lease, not earlier", short, expiry},
	{"an expired lease begins a new term", short, reacquired},
	{"a leader that unregisters releases its lease", long, leaderUnregisters},
	{"a candidate that unregisters changes nothing for the leader", long, candidateUnregisters},
	{"a heartbeat does not renew the lease", short, heartbeat},
	{"candidates are listed until their window ends", short, candidates},
	{"namespaces are separate", long, namespaces},
	{"invalid names and ids are rejected", long, invalidInput},
	{"one of many concurrent candidates wins", long, contention},
	{"every term has one leader", long, terms},
	{"no candidate leads while another holds the lease", short, exclusion},
}

// storeSuite is one test with its store.
type storeSuite struct {
	*testing.T
	Store
	window time.Duration
}

func (s *storeSuite) elect(namespace string, candidate uuid.UUID) store.Lease {
	s.Helper()
	lease, err := s.Elect(s.Context(), namespace, candidate)
	if err != nil {
		s.Fatalf("Elect: %v", err)
	}
	return lease
}

// lead elects a candidate and fails the test unless the candidate wins.
func (s *storeSuite) lead(namespace string, candidate uuid.UUID) store.Lease {
	s.Helper()
	lease := s.elect(namespace, candidate)
	if lease.Holder != candidate || lease.Term < 1 {
		s.Fatalf("got %+v; want %s to lead a term", lease, candidate)
	}
	return lease
}

func (s *storeSuite) leads(namespace string, candidate uuid.UUID) bool {
	s.Helper()
	leads, err := s.IsLeader(s.Context(), namespace, candidate)
	if err != nil {
		s.Fatalf("IsLeader: %v", err)
	}
	return leads
}

func (s *storeSuite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually waits until a condition holds.
func (s *storeSuite) eventually(what string, condition func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// slack is how much longer than its window a lease may be valid, because a database may
// store whole seconds.
const slack = time.Second

func firstCandidate(s *storeSuite) {
	a := uuid.New()
	if s.leads("n", a) {
		s.Error("IsLeader reports true before the first Elect")
	}
	begun := time.Now()
	lease := s.lead("n", a)
	if lease.Term < 1 {
		s.Errorf("the first term is %d", lease.Term)
	}
	if lease.ReadAt.Before(begun) || lease.ReadAt.After(time.Now()) {
		s.Errorf("ReadAt is %v; the call began at %v", lease.ReadAt, begun)
	}
	if lease.ValidFor <= s.window-patience || lease.ValidFor > s.window+slack {
		s.Errorf("ValidFor is %v; the window is %v", lease.ValidFor, s.window)
	}
	if lease.ExpiresAt.IsZero() {
		s.Error("ExpiresAt is not set")
	}
	if !lease.HeldBy(a) || lease.HeldBy(uuid.New()) || lease.HeldBy(uuid.Nil) {
		s.Errorf("HeldBy is wrong for %+v", lease)
	}
	if !s.leads("n", a) {
		s.Error("IsLeader reports false for the leader")
	}
}

func otherLeader(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	lease := s.elect("n", b)
	if lease.Holder != a || lease.Term != led.Term || !lease.ExpiresAt.Equal(led.ExpiresAt) {
		s.Errorf("got %+v; want %+v", lease, led)
	}
	if lease.ValidFor <= 0 || lease.ValidFor > led.ValidFor {
		s.Errorf("ValidFor is %v after it was %v", lease.ValidFor, led.ValidFor)
	}
	if lease.HeldBy(b) || s.leads("n", b) || !s.leads("n", a) {
		s.Error("the wrong candidate leads")
	}
}

func renewal(s *storeSuite) {
	a := uuid.New()
	before := s.lead("n", a)
	s.eventually("renewing moves the end of the lease", func() bool {
		lease := s.lead("n", a)
		if lease.Term != before.Term {
			s.Fatalf("term %d became %d", before.Term, lease.Term)
		}
		return lease.ExpiresAt.After(before.ExpiresAt)
	})
}

func expiry(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	var lease store.Lease
	s.eventually("another candidate acquires the lease", func() bool {
		lease = s.elect("n", b)
		return lease.Holder == b
	})
	if early := time.Until(led.ReadAt.Add(led.ValidFor)); early > 0 || led.HeldBy(a) {
		s.Errorf("another candidate acquired the lease %v before it expired", early)
	}
	if lease.Term <= led.Term {
		s.Errorf("term %d follows term %d", lease.Term, led.Term)
	}
	if s.leads("n", a) {
		s.Error("the old leader still leads")
	}
	if lease := s.elect("n", a); lease.Holder == a && lease.Term == led.Term {
		s.Errorf("the old leader continues its term: %+v", lease)
	}
}

func reacquired(s *storeSuite) {
	a := uuid.New()
	led := s.lead("n", a)
	s.eventually("the lease expires", func() bool { return !s.leads("n", a) })
	if lease := s.lead("n", a); lease.Term <= led.Term {
		s.Errorf("after the lease expired, term %d follows term %d", lease.Term, led.Term)
	}
}

func leaderUnregisters(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	s.must(s.Unregister(s.Context(), "n", a))
	if s.leads("n", a) {
		s.Error("IsLeader reports true after Unregister")
	}
	if found, err := s.Candidates(s.Context(), "n"); err != nil || len(found) > 0 {
		s.Errorf("the candidates are %v, %v", found, err)
	}
	next := s.lead("n", b)
	if next.Term <= led.Term {
		s.Errorf("term %d follows term %d", next.Term, led.Term)
	}
	s.must(s.Unregister(s.Context(), "n", b))
	s.must(s.Unregister(s.Context(), "n", b)) // a second call changes nothing
	if lease := s.lead("n", b); lease.Term <= next.Term {
		s.Errorf("acquired again after Unregister: term %d follows term %d", lease.Term, next.Term)
	}
}

func candidateUnregisters(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	s.elect("n", b)
	s.must(s.Unregister(s.Context(), "n", b))
	if lease := s.elect("n", b); lease.Holder != a || lease.Term != led.Term {
		s.Errorf("got %+v, want %+v", lease, led)
	}
}

func heartbeat(s *storeSuite) {
	a := uuid.New()
	led := s.lead("n", a)
	s.eventually("the lease expires despite heartbeats", func() bool {
		s.must(s.Heartbeat(s.Context(), "n", a))
		return !s.leads("n", a)
	})
	s.must(s.Heartbeat(s.Context(), "n", a))
	if found, err := s.Candidates(s.Context(), "n"); err != nil || !slices.Equal(found, []uuid.UUID{a}) {
		s.Errorf("the candidates are %v, %v", found, err)
	}
	if time.Since(led.ReadAt) < s.window-slack {
		s.Error("the lease expired too early")
	}
}

func candidates(s *storeSuite) {
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	// Each call begins a window; on a slow database one can end before the next call.
	s.eventually("all candidates are listed, in order", func() bool {
		s.must(s.Register(s.Context(), "n", ids[2]))
		s.must(s.Heartbeat(s.Context(), "n", ids[0])) // also adds a candidate
		s.elect("n", ids[1])
		found, err := s.Candidates(s.Context(), "n")
		s.must(err)
		return slices.Equal(found, ids)
	})
	s.eventually("only the candidate that sends heartbeats is left", func() bool {
		s.must(s.Heartbeat(s.Context(), "n", ids[1]))
		found, err := s.Candidates(s.Context(), "n")
		s.must(err)
		return slices.Equal(found, ids[1:2])
	})
	if found, err := s.Candidates(s.Context(), "another"); err != nil || len(found) > 0 {
		s.Errorf("another namespace has %v, %v", found, err)
	}
}

func namespaces(s *storeSuite) {
	names := []string{
		"", "a", "A", "a ", "a  ", " a", "á", "ss", "ß", "a%", "a_", `a\`, "a'b", `a"b`, "a`b", "a;--", "日本",
		strings.Repeat("é", 255), strings.Repeat("é", 254), strings.Repeat("😀", 255),
	}
	leaders := make([]uuid.UUID, len(names))
	for i, name := range names {
		leaders[i] = uuid.New()
		s.lead(name, leaders[i])
	}
	for i, name := range names {
		if lease := s.elect(name, uuid.New()); lease.Holder != leaders[i] {
			s.Errorf("%q has the leader %s, want %s", name, lease.Holder, leaders[i])
		}
	}
	if !s.leads("default", leaders[0]) {
		s.Error("the empty namespace is not \"default\"")
	}
}

func invalidInput(s *storeSuite) {
	a := uuid.New()
	for _, namespace := range []string{strings.Repeat("x", 256), strings.Repeat("é", 256), "a\x00b", "a\nb", "\xff"} {
		if _, err := s.Elect(s.Context(), namespace, a); err == nil {
			s.Errorf("Elect accepts the namespace %q", namespace)
		}
		if err := s.Register(s.Context(), namespace, a); err == nil {
			s.Errorf("Register accepts the namespace %q", namespace)
		}
	}
	if lease, err := s.Elect(s.Context(), "n", uuid.Nil); err == nil {
		s.Errorf("Elect accepts the nil UUID: %+v", lease)
	}
	if _, err := s.IsLeader(s.Context(), "n", uuid.Nil); err == nil {
		s.Error("IsLeader accepts the nil UUID")
	}
}
