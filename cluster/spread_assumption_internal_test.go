package cluster

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
	"github.com/exactly-one/tenure/tenuretest"
)

// A role that is reserved for a member is looked for while the reservation
// lasts, whatever else is going on.
func TestReservationsAreSeenInTime(t *testing.T) {
	t.Parallel()
	const interval = 500 * time.Millisecond
	self := uuid.Max // it checks last
	for _, settled := range []bool{true, false} {
		for _, cost := range []time.Duration{0, interval / 10, 2 * interval} { // of a read; a slow one is not repeated immediately
			b := assumption{self: self, roles: 10000}
			b.updateMembers([]placement.Node{{ID: self}, {ID: uuid.New()}}, time.Second)
			b.confirmed, b.readAt, b.cost = settled, time.Second, cost
			heard := time.Second + 10*time.Millisecond
			b.scheduleRead(heard, interval, false)
			if b.nextRead > heard+interval/2 {
				t.Errorf("settled %t, reads take %v: heard at %v, looks at %v", settled, cost, heard, b.nextRead)
			}
		}
	}
}

// A member adopts a role that is reserved for it only if the plan places the role
// elsewhere: an adopted role stays for a while, so the spread would stay unequal if a
// role that came by the plan had to leave again.
func TestMemberAdoptsReservedRolesAgainstThePlan(t *testing.T) {
	t.Parallel()
	self, other := uuid.New(), uuid.New()
	s := &spreadRun{Spread: &Spread{}, assumption: assumption{self: self, adopted: map[string]time.Duration{}}}
	s.assumption.updateMembers([]placement.Node{{ID: self}, {ID: other}}, time.Second)
	s.plan.Placed = map[string]uuid.UUID{"planned": self, "handed over": other, "led": other, "of the other": other}
	s.adoptReserved([]tenure.RoleHolder{
		{Role: "planned", Node: self, Reserved: true},
		{Role: "handed over", Node: self, Reserved: true},
		{Role: "led", Node: self},
		{Role: "of the other", Node: other, Reserved: true},
	}, time.Second, time.Second)
	if _, adopted := s.assumption.adopted["handed over"]; !adopted || len(s.assumption.adopted) != 1 {
		t.Errorf("adopted %v; want the role that was handed over", s.assumption.adopted)
	}
}

// A role that a planned move reserves against this member's plan stays for less time than
// one that an operator hands over: two such moves may cross, and the member then leads
// more than its share. A role that it was asked to give up no longer stays.
func TestMemberKeepsRolesOfOperatorsLonger(t *testing.T) {
	t.Parallel()
	const interval = time.Second
	self, other := uuid.New(), uuid.New()
	s := &spreadRun{Spread: &Spread{}, assumption: assumption{self: self, adopted: map[string]time.Duration{}}}
	s.assumption.updateMembers([]placement.Node{{ID: self}, {ID: other}}, interval)
	s.plan.Placed = map[string]uuid.UUID{"offered": other, "crossing": other, "given up": other}
	s.offered = map[string]time.Duration{"offered": longAdoption, "given up": longAdoption}
	s.givenUp = map[string]bool{}
	s.adoptOffered(interval, interval)
	s.adoptReserved([]tenure.RoleHolder{{Role: "offered", Node: self, Reserved: true}, {Role: "crossing", Node: self, Reserved: true}}, interval, interval)
	s.givenUp["given up"] = true
	s.adoptOffered(2*interval, interval)
	for role, want := range map[string]time.Duration{"offered": 11 * interval, "crossing": 3 * interval, "given up": 0} {
		until := 2 * interval
		for until < time.Hour && s.belongsHereLocked(role, until) {
			until += interval / 10
		}
		if want = max(want, 2*interval); until != want {
			t.Errorf("the member leads the role %q until %v; want %v", role, until, want)
		}
	}
}

// While nodes join and leave all the time, as in a rolling restart of a large cluster, a
// member still compares its plan with the leaders: members that learn of the changes in
// another order plan otherwise, and no member may lead a role.
func TestPlanIsVerifiedWhileNodesJoinAndLeave(t *testing.T) {
	t.Parallel()
	nodes := make([]placement.Node, 500)
	for i := range nodes {
		nodes[i].ID = uuid.New()
	}
	now := time.Second
	a := assumption{self: uuid.Max, roles: 10_000, readAt: now}
	for begun := now; ; {
		now += time.Second / 2
		nodes[0].Leaving = !nodes[0].Leaving
		a.updateMembers(slices.Clone(nodes), now)
		if now >= a.nextRead {
			return
		}
		if now-begun > time.Minute {
			t.Fatalf("the leaders were not read for %v; the next read is in %v", now-begun, a.nextRead-now)
		}
	}
}

// newPlanner returns a run, of two roles and not started, whose assumption says that its
// node and another one share the roles, and the leaders that it assumes.
func newPlanner(t *testing.T, store Store, other uuid.UUID) (s *spreadRun, leaders map[string]uuid.UUID) {
	t.Helper()
	m, err := Join(t.Context(), store, tenure.Config{Logger: slog.New(slog.DiscardHandler)}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	spread, err := m.Spread("orders", SpreadConfig{Roles: Partitions("orders", 2)})
	if err != nil {
		t.Fatal(err)
	}
	s = newSpreadRun(t.Context(), spread, nil)
	t.Cleanup(s.cancel)
	s.assumption.updateMembers([]placement.Node{{ID: m.ID(), Weight: 1}, {ID: other, Weight: 1}}, time.Second)
	leaders = map[string]uuid.UUID{"orders/0": m.ID(), "orders/1": other}
	s.compareWithPlan(leaders, time.Second)
	return s, leaders
}

// A role that had no leader before, but had one since, is left to its member as long as
// any other.
func TestVacancyEndsWithLeader(t *testing.T) {
	t.Parallel()
	s, leaders := newPlanner(t, tenuretest.NewDatabase(), uuid.New())
	interval := s.member.node.Timing().CheckInterval
	vacant := map[string]uuid.UUID{"orders/0": s.assumption.self}
	s.compareWithPlan(vacant, 2*interval)
	s.compareWithPlan(leaders, 3*interval-1)
	s.compareWithPlan(vacant, 20*interval)
	if len(s.assumption.adopted) > 0 {
		t.Errorf("adopted %v immediately", s.assumption.adopted)
	}
	s.compareWithPlan(vacant, 21*interval)
	if _, adopted := s.assumption.adopted["orders/1"]; !adopted {
		t.Error("not adopted after an interval without a leader")
	}
}

// A member leads a role whose member does not, also while other nodes join and leave.
func TestVacancyOutlastsOtherChanges(t *testing.T) {
	t.Parallel()
	other := uuid.New()
	s, _ := newPlanner(t, tenuretest.NewDatabase(), other)
	interval := s.member.node.Timing().CheckInterval
	vacant := map[string]uuid.UUID{"orders/0": s.assumption.self}
	s.compareWithPlan(vacant, 2*interval)
	for now := 2*interval + interval/2; now < 6*interval; now += interval {
		drains := now/interval%2 == 0
		s.assumption.updateMembers([]placement.Node{
			{ID: s.assumption.self, Weight: 1}, {ID: other, Weight: 1}, {ID: uuid.Max, Weight: 1, Leaving: drains},
		}, now)
		s.replan()
		s.compareWithPlan(vacant, now+interval/2)
	}
	if _, adopted := s.assumption.adopted["orders/1"]; !adopted {
		t.Error("the role has no leader")
	}
}

// lead makes a node lead a role.
func lead(t *testing.T, node *tenure.Node, role string) *tenure.Election {
	t.Helper()
	e, err := node.Election(tenure.NamedRole(role))
	if err == nil {
		err = e.Start(context.Background())
	}
	if err == nil {
		_, err = e.WaitForLeadership(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A role that is reserved for a node which never leads it gets another leader soon after
// the reservation, of whose end there is no notification.
func TestReservedRolesAreReadAgainSoon(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	open := func() *tenure.Node {
		node, err := tenure.Open(t.Context(), db, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close(context.Background()) })
		return node
	}
	other := open()
	defer other.OnOffer(func(string) bool { return true })() // but it does not campaign
	s, _ := newPlanner(t, db, other.ID())
	lead(t, s.member.node, "orders/0")
	if err := lead(t, open(), "orders/1").HandOver(t.Context(), other.ID()); err != nil {
		t.Fatal(err)
	}
	if err := s.readLeaders(t.Context()); err != nil {
		t.Fatal(err)
	}
	interval := s.member.node.Timing().CheckInterval
	if a := &s.assumption; !a.confirmed || a.nextRead > a.readAt+2*interval {
		t.Errorf("confirmed %v; the next read is %v after this one", a.confirmed, a.nextRead-a.readAt)
	}
}

// Members do not read the leaders again and again because a role stays where the plan does
// not place it.
func TestLeadersThatStayAreReadSeldom(t *testing.T) {
	t.Parallel()
	s, _ := newPlanner(t, tenuretest.NewDatabase(), uuid.New())
	for _, role := range []string{"orders/0", "orders/1"} {
		lead(t, s.member.node, role)
	}
	a, interval := &s.assumption, s.member.node.Timing().CheckInterval
	for reads, want := range []bool{true, false} {
		if err := s.readLeaders(t.Context()); err != nil {
			t.Fatal(err)
		}
		if soon := a.nextRead < a.readAt+2*interval; a.confirmed || soon != want {
			t.Errorf("after %d reads: confirmed %v; the next read is %v later", reads+1, a.confirmed, a.nextRead-a.readAt)
		}
	}
}
