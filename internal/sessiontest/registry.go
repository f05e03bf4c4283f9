package sessiontest

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// registryTests are those of what a backend may have.
var registryTests = []test{
	{"a description is told to the others", describe, Registry},
	{"the registry has the nodes in their order", membersOrdered, Registry},
	{"the registry keeps the dead", membersDead, Registry},
	{"a heartbeat tells the load", loadTold, Registry},
	{"a description survives a reconnect", describedAgain, Registry},
	{"a superseded session cannot describe the node", describeSuperseded, Registry},
	{"nothing is asked or told when trust has ended", registrarMute, Registry},
	{"holders are found by role", holders, Registry},
	{"a reserved role is its target's", reservedHolder, Registry},
	{"a request reaches a node that leads nothing", nodeRequests, Registry},
	{"the last node is not drained unless forced", lastNode, Registry},
	{"a node does not live to see requests of its last life", requestsOfThePast, Registry},

	{"a unique name is had by one", uniqueName, UniqueNames},
	{"of nodes that open at once one has the name", uniqueNameRace, UniqueNames},
	{"a name is free when its node is gone", uniqueNameFreed, UniqueNames},
}

func (n *node) registrar() tenure.RegistrySession { return n.Session.(tenure.RegistrySession) }

// members reads the registry through a session.
func (n *node) members() []tenure.Member {
	n.suite.Helper()
	members, err := n.registrar().Members()
	if err != nil {
		n.suite.Fatalf("Members: %v", err)
	}
	return members
}

// member is what a session reads of a node; it must be there once.
func (n *node) member(id uuid.UUID) tenure.Member {
	n.suite.Helper()
	var found []tenure.Member
	for _, m := range n.members() {
		if m.ID == id {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		n.suite.Fatalf("node %s is %d times in the registry", id, len(found))
	}
	return found[0]
}

// whole is a description with all its parts.
func whole() tenure.Description {
	return tenure.Description{
		Status: tenure.StatusDraining, StatusBy: "somebody", Drained: true, Address: "10.0.0.7", HTTPPort: 8080, GRPCPort: 9090,
		Roles: []string{"worker", "gateway"}, Capabilities: []string{"gpu", `a "quoted" one`},
		Labels: map[string]string{"zone": "a", "empty": ""}, Version: "v1.2.3", Spreads: map[string]float64{"tenants": 2.5},
	}
}

func (s *suite) described(m tenure.Member, want tenure.Description) {
	s.Helper()
	got := m.Description
	if len(want.Labels)+len(want.Spreads) == 0 { // an empty map may come back as nil, or not
		got.Labels, got.Spreads = want.Labels, want.Spreads
	}
	if len(want.Roles)+len(want.Capabilities) == 0 {
		got.Roles, got.Capabilities = want.Roles, want.Capabilities
	}
	if !reflect.DeepEqual(got, want) {
		s.Errorf("the registry says %+v, want %+v", got, want)
	}
}

func describe(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive})
	b.quiet()
	b.heard.Store(false)
	if err := a.registrar().WriteDescription(whole()); err != nil {
		s.Fatalf("Describe: %v", err)
	}
	b.told("a description")
	for _, reader := range []*node{a, b} {
		s.described(reader.member(a.id), whole())
		s.described(reader.member(b.id), tenure.Description{Status: tenure.StatusActive})
	}
	if err := a.registrar().WriteDescription(tenure.Description{Status: tenure.StatusActive}); err != nil {
		s.Fatalf("Describe: %v", err)
	}
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive}) // nothing is left of the last one
}

func membersOrdered(s *suite) {
	var opened []*node
	for _, name := range []string{"c", "a", "b"} {
		opened = append(opened, s.open(name, timing()))
	}
	members := opened[0].members()
	if len(members) != 3 {
		s.Fatalf("%d members, want 3: %+v", len(members), members)
	}
	for i, m := range members {
		n := opened[i]
		if m.ID != n.id || m.Incarnation != n.Incarnation() || m.Host != "host-of-"+m.Name {
			s.Errorf("member %d is %+v, want node %s of incarnation %d", i, m, n.id, n.Incarnation())
		}
		if m.Lease != timing().Lease || m.StartedAt.IsZero() || m.LastHeartbeat.Before(m.StartedAt) {
			s.Errorf("member %d: lease %v, started at %v, heard of at %v", i, m.Lease, m.StartedAt, m.LastHeartbeat)
		}
		if m.SilentFor < 0 || m.SilentFor > patience {
			s.Errorf("member %d is silent for %v", i, m.SilentFor)
		}
	}
	if err := opened[1].Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	if left := opened[0].members(); len(left) != 2 || left[0].ID != opened[0].id || left[1].ID != opened[2].id {
		s.Errorf("when one has left: %+v", left)
	}
}

func membersDead(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	if err := a.registrar().WriteDescription(whole()); err != nil {
		s.Fatalf("Describe: %v", err)
	}
	a.Abort()
	s.eventually("a node that died is dead", func() bool {
		if _, err := b.Heartbeat(tenure.Load{}); err != nil {
			s.Fatalf("heartbeat: %v", err)
		}
		return b.member(a.id).Status == tenure.StatusDead
	})
	dead := whole()
	dead.Status, dead.StatusBy = tenure.StatusDead, "" // nobody has asked for that
	s.described(b.member(a.id), dead)
	c := s.reopen(a.id, "a", timing())
	if m := b.member(a.id); m.Status != tenure.StatusActive || m.Incarnation != c.Incarnation() {
		s.Errorf("a node that came back: %+v", m)
	}
}

func loadTold(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	load := tenure.Load{Connections: 3, Jobs: 4, InFlight: 5, CPU: 12.5, Memory: 62.5}
	if _, err := a.Heartbeat(load); err != nil {
		s.Fatalf("heartbeat: %v", err)
	}
	if m := b.member(a.id); m.Load != load {
		s.Errorf("the registry says %+v, want %+v", m.Load, load)
	}
	if m := b.member(b.id); m.Load != (tenure.Load{}) {
		s.Errorf("of another node the registry says %+v", m.Load)
	}
}

func describedAgain(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	started := b.member(a.id).StartedAt
	a.Abort()
	again := s.reopen(a.id, "a", timing(), func(o *tenure.SessionOptions) { o.Description = whole() })
	m := b.member(a.id)
	s.described(m, whole())
	if m.Incarnation != again.Incarnation() {
		s.Errorf("incarnation %d, want %d", m.Incarnation, again.Incarnation())
	}
	if !m.StartedAt.Equal(started) {
		s.Errorf("started at %v, want the time of the first session, %v", m.StartedAt, started)
	}
}

func describeSuperseded(s *suite) {
	a := s.open("a", timing())
	b := s.reopen(a.id, "a", timing())
	s.lost("Describe of a superseded session", a.registrar().WriteDescription(whole()))
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive})
}

func registrarMute(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.mute.Store(true)
	s.lost("Describe", a.registrar().WriteDescription(whole()))
	_, err := a.registrar().Members()
	s.lost("Members", err)
	_, err = a.registrar().Holders([]string{"r"})
	s.lost("Holders", err)
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive})
}

func holders(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	want := []tenure.RoleHolder{
		{Role: "green", Term: b.lead(tenure.NamedRole("green")).Term, Node: b.id},
		{Role: "red", Term: a.lead(tenure.NamedRole("red")).Term, Node: a.id},
	}
	b.lead(tenure.NamedRole("another"))
	a.resign(tenure.NamedRole("vacant"), a.lead(tenure.NamedRole("vacant")).Term)
	for _, n := range []*node{a, b} {
		got, err := n.registrar().Holders([]string{"red", "unknown", "vacant", "green"})
		if err != nil || !slices.Equal(got, want) {
			s.Errorf("holders %+v, error %v, want %+v", got, err, want)
		}
		if none, err := n.registrar().Holders(nil); err != nil || len(none) != 0 {
			s.Errorf("asked for no role: %+v, error %v", none, err)
		}
	}
}

// reservedHolder checks that a role that was handed over is its target's before
// that leads, and nobody's if it never does.
func reservedHolder(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	term := a.lead(role).Term
	a.release(tenure.ReleaseRequest{Role: role, Term: term, Reason: tenure.EndHandedOver, Target: b.id, Reservation: patience})
	is := func(want ...tenure.RoleHolder) {
		s.Helper()
		if got, err := a.registrar().Holders([]string{"r"}); err != nil || !slices.Equal(got, want) {
			s.Errorf("holders %+v, error %v, want %+v", got, err, want)
		}
	}
	is(tenure.RoleHolder{Role: "r", Term: term, Node: b.id, Reserved: true})
	granted := b.lead(role).Term
	is(tenure.RoleHolder{Role: "r", Term: granted, Node: b.id})
	b.release(tenure.ReleaseRequest{
		Role: role, Term: granted, Reason: tenure.EndHandedOver, Target: a.id, Reservation: 50 * time.Millisecond,
	})
	s.eventually("the reservation lapses", func() bool {
		got, err := b.registrar().Holders([]string{"r"})
		return err == nil && len(got) == 0
	})
}

func nodeRequests(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.quiet()
	for _, request := range []tenure.Request{
		{Kind: tenure.RequestDrain, Node: a.id, Target: b.id, By: "the suite"},
		{Kind: tenure.RequestUndrain, Node: a.id, By: "the suite"},
		{Kind: tenure.RequestDrain, Node: a.id, Force: true},
	} {
		if err := s.request(request); err != nil {
			s.Fatalf("%s: %v", request.Kind, err)
		}
		a.woken("a request")
		if pulse, err := a.Heartbeat(tenure.Load{}); err != nil || !pulse.RequestsPending {
			s.Errorf("a request waits: %+v, error %v", pulse, err)
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
}

func lastNode(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	drain := func(n *node, force bool) error {
		return s.request(tenure.Request{Kind: tenure.RequestDrain, Node: n.id, Force: force})
	}
	stranger := tenure.Request{Kind: tenure.RequestDrain, Node: uuid.New()}
	if err := s.request(stranger); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("of a node that does not exist: %v, want ErrUnknownNode", err)
	}
	stranger.Node, stranger.Target = a.id, uuid.New()
	if err := s.request(stranger); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("in favor of a node that does not exist: %v, want ErrUnknownNode", err)
	}
	if err := drain(a, false); err != nil {
		s.Fatalf("one of two: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the other one, while the first one is asked: %v, want ErrLastNode", err)
	}
	if _, err := a.Requests(); err != nil {
		s.Fatalf("Requests: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the other one, when the first one knows: %v, want ErrLastNode", err)
	}
	if err := a.registrar().WriteDescription(tenure.Description{Status: tenure.StatusDraining}); err != nil {
		s.Fatalf("Describe: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the other one, while the first one drains: %v, want ErrLastNode", err)
	}
	if err := s.request(tenure.Request{Kind: tenure.RequestUndrain, Node: b.id}); err != nil {
		s.Errorf("undrain of the last one: %v", err)
	}
	if err := drain(b, true); err != nil {
		s.Errorf("the last one, by force: %v", err)
	}
	if err := a.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	if err := drain(a, true); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("of a node that left: %v, want ErrUnknownNode", err)
	}
}

func requestsOfThePast(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	if err := s.request(tenure.Request{Kind: tenure.RequestDrain, Node: a.id}); err != nil {
		s.Fatalf("drain: %v", err)
	}
	a.Abort()
	again := s.reopen(a.id, "a", timing())
	if got, err := again.Requests(); err != nil || len(got) != 0 {
		s.Errorf("a new session gets %+v, error %v", got, err)
	}
	if err := s.request(tenure.Request{Kind: tenure.RequestDrain, Node: b.id}); err != nil {
		s.Errorf("the other one may be drained then: %v", err)
	}
}

func unique(o *tenure.SessionOptions) { o.UniqueName = true }

func uniqueName(s *suite) {
	a := s.reopen(uuid.New(), "a", timing(), unique)
	if _, err := s.tryOpen(uuid.New(), "a", timing(), unique); !errors.Is(err, tenure.ErrNameTaken) {
		s.Errorf("a name that another node has: %v, want ErrNameTaken", err)
	}
	s.reopen(uuid.New(), "b", timing(), unique)
	s.open("a", timing()) // to whom it does not matter
	a.Abort()
	s.reopen(a.id, "a", timing())
}

func uniqueNameRace(s *suite) {
	const rivals = 5
	var (
		errs  [rivals]error
		group sync.WaitGroup
		start = make(chan struct{})
	)
	s.open("other", timing()) // so that the schema is there
	for i := range rivals {
		group.Go(func() {
			<-start
			_, errs[i] = s.tryOpen(uuid.New(), "a", timing(), unique)
		})
	}
	close(start)
	group.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, tenure.ErrNameTaken):
			s.Errorf("%v, want ErrNameTaken", err)
		}
	}
	if won != 1 {
		s.Errorf("%d of %d nodes have the name, want one", won, rivals)
	}
}

func uniqueNameFreed(s *suite) {
	a := s.reopen(uuid.New(), "a", timing(), unique)
	if err := a.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	b := s.reopen(uuid.New(), "a", mortal(), unique)
	b.Abort() // at the latest, its lease ends
	s.eventually("the name of a node that died is free", func() bool {
		_, err := s.tryOpen(uuid.New(), "a", timing(), unique)
		if err != nil && !errors.Is(err, tenure.ErrNameTaken) {
			s.Fatalf("%v, want ErrNameTaken", err)
		}
		return err == nil
	})
}
