package sessiontest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

func releaseWakes(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	term := a.lead(role).Term
	b.tryHeld(role)
	b.drainWakeups()
	a.resign(role, term)
	b.woken("a release")
	b.lead(role)
}

func abortWakes(s *suite) {
	b, living, other := s.open("b", timing()), s.open("living", timing()), tenure.NamedRole("other")
	a, role := s.open("a", expiringTiming()), tenure.NamedRole("r")
	a.lead(role)
	living.lead(other)
	b.tryHeld(role)
	b.drainWakeups()
	a.Abort()
	b.woken("the end of a session")
	if _, err := living.Heartbeat(tenure.Load{}); err != nil {
		s.Errorf("Invariant 1: heartbeat of a leader after another session has ended: %v", err)
	}
	b.tryHeld(other) // Invariant 1: the live session still leads it
	b.leadSoon(role)
}

func closeRemoves(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	b.resign(role, b.lead(role).Term)
	a.lead(role)
	b.drainWakeups()
	if err := b.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	b.Abort()
	b.Abort()
	request := tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: b.id}
	if err := s.request(request); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("a request to hand over to a node that left: got error %v, want ErrUnknownNode", err)
	}
}

func waitContext(s *suite) {
	a, role := s.open("a", timing()), tenure.NamedRole("r")
	a.drainWakeups()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.waitsWithoutChange(func() context.Context { return ctx })
	a.waitsWithoutChange(func() context.Context {
		soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		s.Cleanup(cancel)
		return soon
	})
	if _, err := a.Heartbeat(tenure.Load{}); err != nil {
		s.Errorf("heartbeat after Wait was interrupted: %v", err)
	}
	a.lead(role)
}

// waitsWithoutChange checks that Wait reports no change when its context ends, apart from
// late notifications of the opening.
func (n *node) waitsWithoutChange(until func() context.Context) {
	n.suite.Helper()
	n.suite.eventually("Wait ends with its context and reports no change", func() bool {
		changed, err := n.Wait(until())
		if err != nil {
			n.suite.Fatalf("Wait: %v", err)
		}
		return !changed
	})
}

func abortUnblocks(s *suite) {
	a := s.open("a", timing())
	a.drainWakeups()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := a.Wait(ctx)
		ended <- err
	}()
	a.Abort()
	s.lost("Wait after Abort", <-ended)
	a.Abort()
}

func heartbeatRenews(s *suite) {
	b, a, role := s.open("b", timing()), s.open("a", expiringTiming()), tenure.NamedRole("r")
	a.lead(role)
	next := time.NewTicker(expiringTiming().Lease / 4)
	defer next.Stop()
	for range 5 {
		<-next.C
		if _, err := a.Heartbeat(tenure.Load{Jobs: 1}); err != nil {
			s.Fatalf("heartbeat: %v", err)
		}
		if _, err := b.Heartbeat(tenure.Load{}); err != nil {
			s.Fatalf("heartbeat: %v", err)
		}
		b.tryHeld(role)
	}
}

func silentExpires(s *suite) {
	b, a, role := s.open("b", timing()), s.open("a", expiringTiming()), tenure.NamedRole("r")
	a.lead(role)
	sent := time.Now()
	if _, err := a.Heartbeat(tenure.Load{}); err != nil {
		s.Fatalf("heartbeat: %v", err)
	}
	b.leadSoon(role)
	silent := time.Since(sent)
	if silent < expiringTiming().Lease {
		s.Errorf("another node acquired the role %v after the heartbeat; the lease is %v", silent, expiringTiming().Lease)
	}
	_, err := a.Heartbeat(tenure.Load{})
	s.lost("heartbeat after the lease has expired", err)
}

// maySend checks that no method of a session renews the lease after trust has ended.
func maySend(s *suite) {
	b, a, role := s.open("b", timing()), s.open("a", expiringTiming()), tenure.NamedRole("r")
	term := a.lead(role).Term
	a.trustEnded.Store(true)
	began := time.Now()
	s.eventually("the role is granted", func() bool {
		_, err := a.Heartbeat(tenure.Load{})
		s.lost("Heartbeat", err)
		_, err = a.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("another")}})
		s.lost("TryAcquire", err)
		_, err = a.Requests()
		s.lost("Requests", err)
		s.lost("Release", a.Release([]tenure.ReleaseRequest{{Role: role, Term: term}}))
		return b.try(role).Outcome == tenure.OutcomeGranted
	})
	if took := time.Since(began); took > 2*expiringTiming().Lease {
		s.Errorf("a session that must not send held its role for %v; the lease is %v", took, expiringTiming().Lease)
	}
}

func superseded(s *suite) {
	a, role := s.open("a", expiringTiming()), tenure.NamedRole("r")
	a.lead(role)
	b := s.reopen(a.id, "a", timing())
	var err error
	s.eventually("the old session fails", func() bool {
		_, err = a.Heartbeat(tenure.Load{})
		return err != nil
	})
	s.lost("heartbeat of a superseded session", err)
	a.Abort()
	b.leadSoon(role)
}

func leaders(s *suite) {
	a, b := s.reopen(uuid.New(), "a", timing(), func(o *tenure.SessionOptions) {
		o.Description.Address, o.Description.HTTPPort, o.Description.GRPCPort = "address-of-a", 8080, 9090
		o.Description.Labels = map[string]string{"zone": "zone of a"}
	}), s.open("b", timing())
	red, green, blue := tenure.NamedRole("red"), tenure.NamedRole("green"), tenure.NamedRole("blue")
	term := a.lead(red).Term
	b.lead(green)
	b.resign(blue, b.lead(blue).Term)

	all := s.leaders()
	if names := roleNames(all); !slices.Equal(names, []string{"green", "red"}) {
		s.Fatalf("leaders of %q, want green and red in this order", names)
	}
	l := all[1]
	if l.Term != term || l.NodeID != a.id || l.NodeName != "a" || l.Host != "host-of-a" {
		s.Errorf("got %+v, want term %d of a, %s", l, term, a.id)
	}
	if l.Address != "address-of-a" || l.HTTPPort != 8080 || l.GRPCPort != 9090 || len(l.Labels) != 1 || l.Labels["zone"] != "zone of a" {
		s.Errorf("got address %q, ports %d and %d, labels %v; want those of a's description", l.Address, l.HTTPPort, l.GRPCPort, l.Labels)
	}
	if !l.Valid() || l.ValidFor <= 0 || l.ValidFor > timing().Lease {
		s.Errorf("valid: %t, for %v; want within the lease, %v", l.Valid(), l.ValidFor, timing().Lease)
	}
	if l.AcquiredAt.IsZero() || !l.LeaseUntil.After(l.AcquiredAt) {
		s.Errorf("acquired at %v, lease until %v", l.AcquiredAt, l.LeaseUntil)
	}
	if names := roleNames(s.leaders("red", "blue", "unknown")); !slices.Equal(names, []string{"red"}) {
		s.Errorf("red, blue and an unknown role: leaders of %q, want only red", names)
	}
}

// leaderNames: the session of an agent acquires roles for several nodes in one call, and one
// for none of them in the next.
func leaderNames(s *suite) {
	host, next := s.open("host-1", timing()), s.open("n4", timing())
	mails, reports, views := tenure.NamedRole("mails"), tenure.NamedRole("reports"), tenure.NamedRole("views")
	results, err := host.TryAcquire([]tenure.AcquireRequest{{Role: reports, NodeName: "n2"}, {Role: mails, NodeName: "n1"}})
	if err != nil || len(results) != 2 || results[0].Outcome != tenure.OutcomeGranted || results[1].Outcome != tenure.OutcomeGranted {
		s.Fatalf("TryAcquire: %+v, error %v; want two terms", results, err)
	}
	host.lead(views)
	named := func() (names []string) {
		for _, l := range s.leaders() {
			names = append(names, l.Role+" "+l.NodeName+" "+l.Agent)
		}
		return names
	}
	if got, want := named(), []string{"mails n1 host-1", "reports n2 host-1", "views host-1 "}; !slices.Equal(got, want) {
		s.Errorf("the leaders, with their agents, are %q; want %q", got, want)
	}
	host.resign(mails, results[1].Term)
	next.lead(mails)
	if got, want := named(), []string{"mails n4 ", "reports n2 host-1", "views host-1 "}; !slices.Equal(got, want) {
		s.Errorf("after mails has moved, the leaders are %q; want %q", got, want)
	}
	if past, ok := s.backend.(interface {
		History(context.Context, history.Query) ([]history.Term, error)
	}); ok {
		terms, err := past.History(s.Context(), history.Query{Role: "mails", Limit: 10})
		if err != nil || !slices.ContainsFunc(terms, func(t history.Term) bool { return t.Term == results[1].Term && t.NodeName == "n1" }) {
			s.Errorf("the history of mails is %+v, error %v; want a term of n1", terms, err)
		}
	}
}

func (s *suite) leaders(roles ...string) []tenure.Leader {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	leaders, err := s.backend.Leaders(ctx, roles...)
	if err != nil {
		s.Fatalf("Leaders: %v", err)
	}
	return leaders
}

func roleNames(leaders []tenure.Leader) []string {
	var names []string
	for _, l := range leaders {
		names = append(names, l.Role)
	}
	return names
}

func (s *suite) request(r tenure.Request) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.backend.Request(ctx, r)
}

func requests(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.lead(tenure.NamedRole("r"))
	b.lead(tenure.NamedRole("another"))
	a.drainWakeups()
	if pending, err := a.Heartbeat(tenure.Load{}); err != nil || pending {
		s.Errorf("without a request: pending %t, error %v", pending, err)
	}
	for _, request := range []tenure.Request{
		{Kind: tenure.RequestStepDown, Role: "r", By: "the suite"},
		{Kind: tenure.RequestHandOver, Role: "r", Target: b.id, By: "the suite"},
	} {
		s.delivers(request, a, b)
	}
}

// requestsOfTerm: a request for a term is not for the next one.
func requestsOfTerm(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	first := a.lead(role).Term
	a.resign(role, first)
	second := b.lead(role).Term
	for _, request := range []tenure.Request{
		{Kind: tenure.RequestStepDown, Role: "r", Term: first},
		{Kind: tenure.RequestHandOver, Role: "r", Target: a.id, Term: first},
	} {
		if err := s.handOver(request, a); !errors.Is(err, tenure.ErrNoLeader) {
			s.Errorf("%s of a term that is over: got error %v, want ErrNoLeader", request.Kind, err)
		}
	}
	if got, err := b.Requests(); err != nil || len(got) != 0 {
		s.Errorf("the next leader got %+v, error %v", got, err)
	}
	if err := s.request(tenure.Request{Kind: tenure.RequestStepDown, Role: "r", Term: second}); err != nil {
		s.Errorf("a request for the present term: %v", err)
	}
	if got, err := b.Requests(); err != nil || len(got) != 1 {
		s.Errorf("the leader got %+v, error %v, want one request", got, err)
	}
}

func requestsRejected(s *suite) {
	a := s.open("a", timing())
	for _, c := range []struct {
		request tenure.Request
		want    error
	}{
		{tenure.Request{Kind: tenure.RequestStepDown, Role: "vacant"}, tenure.ErrNoLeader},
		{tenure.Request{Kind: tenure.RequestHandOver, Role: "vacant", Target: a.id}, tenure.ErrNoLeader},
		{tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: uuid.New()}, tenure.ErrUnknownNode},
	} {
		if c.request.Role == "r" {
			a.lead(tenure.NamedRole("r"))
		}
		if err := s.request(c.request); !errors.Is(err, c.want) {
			s.Errorf("%+v: got error %v, want %v", c.request, err, c.want)
		}
	}
	a.drainWakeups()
	if got, err := a.Requests(); err != nil || len(got) != 0 {
		s.Errorf("rejected requests were delivered: %+v, error %v", got, err)
	}
}

// handOver makes a request whose target, if it has one, answers the offer of the role.
func (s *suite) handOver(request tenure.Request, target *node) error {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- s.request(request) }()
	for request.Target != uuid.Nil {
		select {
		case err := <-done:
			return err
		case <-time.After(2 * time.Millisecond):
		}
		if got, err := target.Requests(); err != nil || len(got) > 0 {
			s.Errorf("the target of an offer got requests %+v, error %v", got, err)
		}
	}
	return <-done
}

// handOverDeclined hands a role over to a node that does not campaign for it.
func handOverDeclined(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.lead(tenure.NamedRole("r"))
	for _, only := range []bool{false, true} {
		request := tenure.Request{Kind: tenure.RequestHandOver, Offer: only, Role: "r", Target: b.id}
		b.declines.Store(true)
		if err := s.handOver(request, b); !errors.Is(err, tenure.ErrNotActive) {
			s.Errorf("a hand-over (offer %t) to a node that does not campaign: got error %v, want ErrNotActive", only, err)
		}
		b.declines.Store(false)
		if got, err := a.Requests(); err != nil || len(got) != 0 {
			s.Errorf("the leader got a declined request (offer %t): %+v, error %v", only, got, err)
		}
	}
	if err := s.handOver(tenure.Request{Kind: tenure.RequestHandOver, Offer: true, Role: "r", Target: b.id}, b); err != nil {
		s.Errorf("an offer to a node that campaigns: %v", err)
	}
	if got, err := a.Requests(); err != nil || len(got) != 0 {
		s.Errorf("the leader got an offer: %+v, error %v", got, err)
	}
}

// delivers makes a request of a node, which gets it once and alone.
func (s *suite) delivers(request tenure.Request, a, b *node) {
	s.Helper()
	if err := s.handOver(request, b); err != nil {
		s.Fatalf("%s: %v", request.Kind, err)
	}
	a.woken("a request")
	if pending, err := a.Heartbeat(tenure.Load{}); err != nil || !pending {
		s.Errorf("with a request: pending %t, error %v", pending, err)
	}
	if others, err := b.Requests(); err != nil || len(others) != 0 {
		s.Errorf("requests for another node: %+v, error %v", others, err)
	}
	got, err := a.Requests()
	if err != nil || len(got) != 1 {
		s.Fatalf("got requests %+v, error %v, want one", got, err)
	}
	if got[0].At.IsZero() {
		s.Error("the time of the request is not set")
	}
	got[0].At = time.Time{}
	if got[0] != request {
		s.Errorf("got %+v, want %+v", got[0], request)
	}
	if again, err := a.Requests(); err != nil || len(again) != 0 {
		s.Errorf("the second time: got %+v, error %v, want none", again, err)
	}
}
