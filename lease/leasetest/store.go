package leasetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/lease"
)

// Windows of the tests: one that does not run out while a test runs, and one
// that does.
const (
	long  = 10 * time.Minute
	short = 2 * time.Second
)

// patience is how long the suite waits for something that should happen.
const patience = 40 * time.Second

var storeTests = []struct {
	name   string
	window time.Duration
	run    func(*storeSuite)
}{
	{"the first to stand leads", long, first},
	{"others are told who leads", long, told},
	{"renewing keeps the term", long, renewing},
	{"a lease that ran out goes to another, not before", short, runsOut},
	{"a seat taken again is a new term", short, takenAgain},
	{"a leader that leaves vacates its seat", long, leaving},
	{"a candidate that leaves changes nothing for the leader", long, candidateLeaving},
	{"a heartbeat does not renew the lease", short, heartbeat},
	{"candidates are listed while they are heard of", short, candidates},
	{"namespaces do not meet", long, namespaces},
	{"what cannot be stored is refused", long, refused},
	{"one of many at once wins", long, contention},
	{"every term has one leader", long, terms},
	{"nobody leads while another holds the lease", short, exclusion},
}

// storeSuite is one test with its store.
type storeSuite struct {
	*testing.T
	Store
	window time.Duration
}

func (s *storeSuite) elect(namespace string, candidate uuid.UUID) lease.Seat {
	s.Helper()
	seat, err := s.Elect(s.Context(), namespace, candidate)
	if err != nil {
		s.Fatalf("Elect: %v", err)
	}
	return seat
}

// lead elects a candidate that must win.
func (s *storeSuite) lead(namespace string, candidate uuid.UUID) lease.Seat {
	s.Helper()
	seat := s.elect(namespace, candidate)
	if seat.Leader != candidate || seat.Term < 1 {
		s.Fatalf("got %+v; want %s to lead a term", seat, candidate)
	}
	return seat
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

// slack is how much longer than its window a lease may run: a database may keep
// whole seconds.
const slack = time.Second

func first(s *storeSuite) {
	a := uuid.New()
	if s.leads("n", a) {
		s.Error("leads before it stood")
	}
	begun := time.Now()
	seat := s.lead("n", a)
	if seat.Term < 1 {
		s.Errorf("the first term is %d", seat.Term)
	}
	if seat.ReadAt.Before(begun) || seat.ReadAt.After(time.Now()) {
		s.Errorf("ReadAt is %v; the call began at %v", seat.ReadAt, begun)
	}
	if seat.ValidFor <= s.window-patience || seat.ValidFor > s.window+slack {
		s.Errorf("ValidFor is %v; the window is %v", seat.ValidFor, s.window)
	}
	if seat.ExpiresAt.IsZero() {
		s.Error("ExpiresAt is not set")
	}
	if !seat.Holds(a) || seat.Holds(uuid.New()) || seat.Holds(uuid.Nil) {
		s.Errorf("Holds is wrong for %+v", seat)
	}
	if !s.leads("n", a) {
		s.Error("IsLeader denies it")
	}
}

func told(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	seat := s.elect("n", b)
	if seat.Leader != a || seat.Term != led.Term || !seat.ExpiresAt.Equal(led.ExpiresAt) {
		s.Errorf("got %+v; want %+v", seat, led)
	}
	if seat.ValidFor <= 0 || seat.ValidFor > led.ValidFor {
		s.Errorf("ValidFor is %v after it was %v", seat.ValidFor, led.ValidFor)
	}
	if seat.Holds(b) || s.leads("n", b) || !s.leads("n", a) {
		s.Error("the wrong one leads")
	}
}

func renewing(s *storeSuite) {
	a := uuid.New()
	before := s.lead("n", a)
	s.eventually("renewing moves the end of the lease", func() bool {
		seat := s.lead("n", a)
		if seat.Term != before.Term {
			s.Fatalf("term %d became %d", before.Term, seat.Term)
		}
		return seat.ExpiresAt.After(before.ExpiresAt)
	})
}

func runsOut(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	var seat lease.Seat
	s.eventually("another takes the seat", func() bool {
		seat = s.elect("n", b)
		return seat.Leader == b
	})
	if early := time.Until(led.ReadAt.Add(led.ValidFor)); early > 0 || led.Holds(a) {
		s.Errorf("the seat was taken %v before the lease ran out", early)
	}
	if seat.Term <= led.Term {
		s.Errorf("term %d follows term %d", seat.Term, led.Term)
	}
	if s.leads("n", a) {
		s.Error("the old leader still leads")
	}
	if seat := s.elect("n", a); seat.Leader == a && seat.Term == led.Term {
		s.Errorf("the old leader goes on with its term: %+v", seat)
	}
}

func takenAgain(s *storeSuite) {
	a := uuid.New()
	led := s.lead("n", a)
	s.eventually("the lease runs out", func() bool { return !s.leads("n", a) })
	if seat := s.lead("n", a); seat.Term <= led.Term {
		s.Errorf("after its lease had run out: term %d follows term %d", seat.Term, led.Term)
	}
}

func leaving(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	s.must(s.Unregister(s.Context(), "n", a))
	if s.leads("n", a) {
		s.Error("still leads")
	}
	if found, err := s.Candidates(s.Context(), "n"); err != nil || len(found) > 0 {
		s.Errorf("the candidates are %v, %v", found, err)
	}
	next := s.lead("n", b)
	if next.Term <= led.Term {
		s.Errorf("term %d follows term %d", next.Term, led.Term)
	}
	s.must(s.Unregister(s.Context(), "n", b))
	s.must(s.Unregister(s.Context(), "n", b)) // again, which changes nothing
	if seat := s.lead("n", b); seat.Term <= next.Term {
		s.Errorf("taken again after leaving: term %d after %d", seat.Term, next.Term)
	}
}

func candidateLeaving(s *storeSuite) {
	a, b := uuid.New(), uuid.New()
	led := s.lead("n", a)
	s.elect("n", b)
	s.must(s.Unregister(s.Context(), "n", b))
	if seat := s.elect("n", b); seat.Leader != a || seat.Term != led.Term {
		s.Errorf("got %+v, want %+v", seat, led)
	}
}

func heartbeat(s *storeSuite) {
	a := uuid.New()
	led := s.lead("n", a)
	s.eventually("the lease runs out in spite of heartbeats", func() bool {
		s.must(s.Heartbeat(s.Context(), "n", a))
		return !s.leads("n", a)
	})
	s.must(s.Heartbeat(s.Context(), "n", a))
	if found, err := s.Candidates(s.Context(), "n"); err != nil || !slices.Equal(found, []uuid.UUID{a}) {
		s.Errorf("the candidates are %v, %v", found, err)
	}
	if time.Since(led.ReadAt) < s.window-slack {
		s.Error("the lease ran out too early")
	}
}

func candidates(s *storeSuite) {
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	// Each call begins a window, and a slow database may let one run out.
	s.eventually("all candidates are listed, in order", func() bool {
		s.must(s.Register(s.Context(), "n", ids[2]))
		s.must(s.Heartbeat(s.Context(), "n", ids[0])) // of one that was not registered
		s.elect("n", ids[1])
		found, err := s.Candidates(s.Context(), "n")
		s.must(err)
		return slices.Equal(found, ids)
	})
	s.eventually("only the one that is heard of is left", func() bool {
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
		if seat := s.elect(name, uuid.New()); seat.Leader != leaders[i] {
			s.Errorf("%q is led by %s, want %s", name, seat.Leader, leaders[i])
		}
	}
	if !s.leads("default", leaders[0]) {
		s.Error("the empty namespace is not the default one")
	}
}

func refused(s *storeSuite) {
	a := uuid.New()
	for _, namespace := range []string{strings.Repeat("x", 256), strings.Repeat("é", 256), "a\x00b", "a\nb", "\xff"} {
		if _, err := s.Elect(s.Context(), namespace, a); err == nil {
			s.Errorf("the namespace %q was taken", namespace)
		}
		if err := s.Register(s.Context(), namespace, a); err == nil {
			s.Errorf("a candidate was registered in %q", namespace)
		}
	}
	if seat, err := s.Elect(s.Context(), "n", uuid.Nil); err == nil {
		s.Errorf("the nil UUID was elected: %+v", seat)
	}
	if _, err := s.IsLeader(s.Context(), "n", uuid.Nil); err == nil {
		s.Error("IsLeader answers for the nil UUID")
	}
}
