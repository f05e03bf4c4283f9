package sessiontest

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// registryTests test the optional features.
var registryTests = []test{
	{"other nodes read a new description", describe, Registry},
	{"the registry lists nodes by incarnation", membersOrdered, Registry},
	{"the registry keeps dead nodes", membersDead, Registry},
	{"a heartbeat records the load", heartbeatLoad, Registry},
	{"a description survives a reconnect", descriptionSurvives, Registry},
	{"a superseded session cannot describe the node", describeSuperseded, Registry},
	{"the registry is not used after trust has ended", registryAfterTrust, Registry},
	{"holders are found by role", holders, Registry},
	{"the holder of a reserved role is its target", reservedHolder, Registry},
	{"a request reaches a node without roles", nodeRequests, Registry},
	{"the last node is drained only by force", lastNode, Registry},
	{"a hand-over needs an active target", activeTarget, Registry},
	{"a new process gets no requests of the last one", oldRequests, Registry},
	{"a new session gets the requests for its node that the last one did not take", keptRequests, Registry},

	{"only one node has a unique name", uniqueName, UniqueNames},
	{"one of many concurrent nodes gets the name", uniqueNameRace, UniqueNames},
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

// member reads a node from the registry, which must contain it once.
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

// fullDescription sets every field.
func fullDescription() tenure.Description {
	return tenure.Description{
		Status: tenure.StatusDraining, StatusBy: "an operator", Drained: true, Address: "10.0.0.7", HTTPPort: 8080, GRPCPort: 9090,
		Roles: []string{"worker", "gateway"}, Capabilities: []string{"gpu", `a "quoted" one`},
		Labels: map[string]string{"zone": "a", "empty": ""}, Version: "v1.2.3", Spreads: map[string]float64{"tenants": 2.5},
	}
}

func (s *suite) described(m tenure.Member, want tenure.Description) {
	s.Helper()
	got := m.Description
	if len(want.Labels)+len(want.Spreads) == 0 { // an empty map can be read as nil
		got.Labels, got.Spreads = want.Labels, want.Spreads
	}
	if len(want.Roles)+len(want.Capabilities) == 0 {
		got.Roles, got.Capabilities = want.Roles, want.Capabilities
	}
	if !reflect.DeepEqual(got, want) {
		s.Errorf("the registry has %+v, want %+v", got, want)
	}
}

func describe(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive})
	b.drainWakeups()
	b.nodesChanged.Store(false)
	if err := a.registrar().WriteDescription(fullDescription()); err != nil {
		s.Fatalf("WriteDescription: %v", err)
	}
	b.notified("a description")
	for _, reader := range []*node{a, b} {
		s.described(reader.member(a.id), fullDescription())
		s.described(reader.member(b.id), tenure.Description{Status: tenure.StatusActive})
	}
	if err := a.registrar().WriteDescription(tenure.Description{Status: tenure.StatusActive}); err != nil {
		s.Fatalf("WriteDescription: %v", err)
	}
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive}) // no field of the last one is left
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
			s.Errorf("member %d: lease %v, started at %v, last heartbeat at %v", i, m.Lease, m.StartedAt, m.LastHeartbeat)
		}
		if m.SilentFor < 0 || m.SilentFor > patience {
			s.Errorf("member %d is silent for %v", i, m.SilentFor)
		}
	}
	if err := opened[1].Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	if left := opened[0].members(); len(left) != 2 || left[0].ID != opened[0].id || left[1].ID != opened[2].id {
		s.Errorf("after one has left: %+v", left)
	}
}

func membersDead(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	if err := a.registrar().WriteDescription(fullDescription()); err != nil {
		s.Fatalf("WriteDescription: %v", err)
	}
	a.Abort()
	s.eventually("a crashed node is dead", func() bool {
		if _, err := b.Heartbeat(tenure.Load{}); err != nil {
			s.Fatalf("heartbeat: %v", err)
		}
		return b.member(a.id).Status == tenure.StatusDead
	})
	dead := fullDescription()
	dead.Status, dead.StatusBy = tenure.StatusDead, "" // no operator has requested that
	s.described(b.member(a.id), dead)
	c := s.reopen(a.id, "a", timing())
	if m := b.member(a.id); m.Status != tenure.StatusActive || m.Incarnation != c.Incarnation() {
		s.Errorf("a node that returned: %+v", m)
	}
}

func heartbeatLoad(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	for _, load := range []tenure.Load{
		{Connections: 3, Jobs: 4, InFlight: 5, CPU: 12.5, Memory: 62.5},
		{Connections: math.MaxInt32, Jobs: math.MaxInt32, InFlight: math.MaxInt32, CPU: 1_000_000, Memory: 1_000_000},
	} {
		if _, err := a.Heartbeat(load); err != nil {
			s.Fatalf("heartbeat: %v", err)
		}
		if m := b.member(a.id); m.Load != load {
			s.Errorf("the registry has %+v, want %+v", m.Load, load)
		}
	}
	if m := b.member(b.id); m.Load != (tenure.Load{}) {
		s.Errorf("for another node the registry has %+v", m.Load)
	}
}

func descriptionSurvives(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	started := b.member(a.id).StartedAt
	a.Abort()
	again := s.reopen(a.id, "a", timing(), func(o *tenure.SessionOptions) { o.Description = fullDescription() })
	m := b.member(a.id)
	s.described(m, fullDescription())
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
	s.lost("WriteDescription of a superseded session", a.registrar().WriteDescription(fullDescription()))
	s.described(b.member(a.id), tenure.Description{Status: tenure.StatusActive})
}

func registryAfterTrust(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.trustEnded.Store(true)
	s.lost("WriteDescription", a.registrar().WriteDescription(fullDescription()))
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
			s.Errorf("no roles: %+v, error %v", none, err)
		}
	}
}

// reservedHolder checks that the target of a handed-over role is its holder even before
// the next term, and that the role has no holder after the reservation has expired.
func reservedHolder(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	term := a.lead(role).Term
	a.release(tenure.ReleaseRequest{Role: role, Term: term, Reason: history.EndHandedOver, Target: b.id, Reservation: patience})
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
		Role: role, Term: granted, Reason: history.EndHandedOver, Target: a.id, Reservation: 50 * time.Millisecond,
	})
	s.eventually("the reservation expires", func() bool {
		got, err := b.registrar().Holders([]string{"r"})
		return err == nil && len(got) == 0
	})
}

func nodeRequests(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	a.drainWakeups()
	for _, request := range []tenure.Request{
		{Kind: tenure.RequestDrain, Node: a.id, Target: b.id, By: "the suite"},
		{Kind: tenure.RequestUndrain, Node: a.id, By: "the suite"},
		{Kind: tenure.RequestDrain, Node: a.id, Force: true},
	} {
		s.delivers(request, a, b)
	}
}

func lastNode(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	drain := func(n *node, force bool) error {
		return s.request(tenure.Request{Kind: tenure.RequestDrain, Node: n.id, Force: force})
	}
	stranger := tenure.Request{Kind: tenure.RequestDrain, Node: uuid.New()}
	if err := s.request(stranger); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("an unknown node: %v, want ErrUnknownNode", err)
	}
	stranger.Node, stranger.Target = a.id, uuid.New()
	if err := s.request(stranger); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("an unknown target: %v, want ErrUnknownNode", err)
	}
	if err := drain(a, false); err != nil {
		s.Fatalf("the first of two nodes: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the second node, with a request for the first: %v, want ErrLastNode", err)
	}
	if _, err := a.Requests(); err != nil {
		s.Fatalf("Requests: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the second node, after the first has read its request: %v, want ErrLastNode", err)
	}
	if err := a.registrar().WriteDescription(tenure.Description{Status: tenure.StatusDraining}); err != nil {
		s.Fatalf("WriteDescription: %v", err)
	}
	if err := drain(b, false); !errors.Is(err, tenure.ErrLastNode) {
		s.Errorf("the second node, while the first is draining: %v, want ErrLastNode", err)
	}
	if err := s.request(tenure.Request{Kind: tenure.RequestUndrain, Node: b.id}); err != nil {
		s.Errorf("undrain of the last node: %v", err)
	}
	if err := drain(b, true); err != nil {
		s.Errorf("the last node, by force: %v", err)
	}
	if err := a.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	if err := drain(a, true); !errors.Is(err, tenure.ErrUnknownNode) {
		s.Errorf("a node that has left: %v, want ErrUnknownNode", err)
	}
}

// A target that does not campaign would leave the role vacant.
func activeTarget(s *suite) {
	a, b, role := s.open("a", timing()), s.open("b", timing()), tenure.NamedRole("r")
	a.lead(role)
	handOver := tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: b.id}
	if err := s.request(tenure.Request{Kind: tenure.RequestDrain, Node: b.id}); err != nil {
		s.Fatalf("drain: %v", err)
	}
	if err := s.request(handOver); !errors.Is(err, tenure.ErrNotActive) {
		s.Errorf("a target with a request to drain: %v, want ErrNotActive", err)
	}
	if _, err := b.Requests(); err != nil {
		s.Fatalf("Requests: %v", err)
	}
	for status, want := range map[tenure.NodeStatus]error{
		tenure.StatusDraining: tenure.ErrNotActive, tenure.StatusJoining: tenure.ErrNotActive, tenure.StatusActive: nil,
	} {
		if err := b.registrar().WriteDescription(tenure.Description{Status: status}); err != nil {
			s.Fatalf("WriteDescription: %v", err)
		}
		if err := s.handOver(handOver, b); !errors.Is(err, want) {
			s.Errorf("a target that is %s: %v, want %v", status, err, want)
		}
	}
}

func oldRequests(s *suite) {
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
		s.Errorf("drain of the other node: %v", err)
	}
}

func keptRequests(s *suite) {
	a, b := s.open("a", timing()), s.open("b", timing())
	drain := func(by string) {
		s.Helper()
		if err := s.request(tenure.Request{Kind: tenure.RequestDrain, Node: a.id, By: by}); err != nil {
			s.Fatalf("drain: %v", err)
		}
	}
	drain("ann")
	if got, err := a.Requests(); err != nil || len(got) != 1 {
		s.Fatalf("got %+v, error %v, want one request", got, err)
	}
	drain("bob")
	a.Abort()
	s.eventually("the node is dead", func() bool {
		return slices.ContainsFunc(b.members(), func(m tenure.Member) bool { return m.ID == a.id && m.Status == tenure.StatusDead })
	})
	again, err := s.tryOpen(a.id, "a", timing(), func(o *tenure.SessionOptions) { o.Reopened = true })
	if err != nil {
		s.Fatalf("open again: %v", err)
	}
	if pending, err := again.Heartbeat(tenure.Load{}); err != nil || !pending {
		s.Errorf("the first heartbeat: pending %t, error %v", pending, err)
	}
	if got, err := again.Requests(); err != nil || len(got) != 1 || got[0].By != "bob" {
		s.Errorf("a new session gets %+v, error %v, want the request of bob", got, err)
	}
}

func unique(o *tenure.SessionOptions) { o.UniqueName = true }

func uniqueName(s *suite) {
	a := s.reopen(uuid.New(), "a", timing(), unique)
	if _, err := s.tryOpen(uuid.New(), "a", timing(), unique); !errors.Is(err, tenure.ErrNameTaken) {
		s.Errorf("the name of another node: %v, want ErrNameTaken", err)
	}
	s.reopen(uuid.New(), "b", timing(), unique)
	s.open("a", timing()) // without UniqueName
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
	s.open("other", timing()) // creates the schema
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
	b := s.reopen(uuid.New(), "a", expiringTiming(), unique)
	b.Abort() // its lease expires, unless its end is noticed earlier
	s.eventually("the name of a crashed node is free", func() bool {
		_, err := s.tryOpen(uuid.New(), "a", timing(), unique)
		if err != nil && !errors.Is(err, tenure.ErrNameTaken) {
			s.Fatalf("%v, want ErrNameTaken", err)
		}
		return err == nil
	})
}
