package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// sharer is a member that shares roles.
type sharer struct {
	node
	*cluster.Spread
	stop func() error // ends the run and returns its error
}

// idle is work that leads until it is asked to stop.
func idle(ctx context.Context, _ *tenure.Term) error {
	<-ctx.Done()
	return nil
}

// share makes a node share roles until the test ends.
func (n node) share(config cluster.SpreadConfig, work tenure.Work) *sharer {
	n.t.Helper()
	if config.MoveDelay == 0 {
		config.MoveDelay = 100 * time.Millisecond
	}
	spread, err := n.Spread("orders", config)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- spread.Run(ctx, work) }()
	s := &sharer{node: n, Spread: spread}
	s.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("the spread does not end")
		}
	})
	n.t.Cleanup(func() {
		if err := s.stop(); err != nil && !errors.Is(err, tenure.ErrClosed) {
			n.t.Errorf("%s: %v", n.Node().Name(), err)
		}
	})
	return s
}

// until waits for a condition on the leaders, and returns them.
func until(t *testing.T, what string, sharers []*sharer, is func(held map[string][]string) bool) map[string][]string {
	t.Helper()
	held := map[string][]string{}
	testkit.AwaitNil(t, patience, func() error {
		for _, s := range sharers {
			held[s.Node().Name()] = s.Held()
		}
		if !is(held) {
			return fmt.Errorf("not %s: %v", what, held)
		}
		return nil
	})
	return held
}

// all reports whether every one of n roles is led, by nodes that lead so many.
func all(n int, counts ...int) func(map[string][]string) bool {
	return func(held map[string][]string) bool {
		var lengths []int
		led := map[string]bool{}
		for _, roles := range held {
			lengths = append(lengths, len(roles))
			for _, role := range roles {
				led[role] = true
			}
		}
		slices.Sort(lengths)
		slices.Sort(counts)
		return len(led) == n && slices.Equal(lengths, counts)
	}
}

func kept(before, after []string) int {
	n := 0
	for _, role := range after {
		if slices.Contains(before, role) {
			n++
		}
	}
	return n
}

func TestSpreadSharesRoles(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	roles := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 12)}
	a := site.join("a", cluster.Config{}, brief).share(roles, idle)
	until(t, "led by the only one", []*sharer{a}, all(12, 12))

	b := site.join("b", cluster.Config{}, brief).share(roles, idle)
	two := until(t, "shared by two", []*sharer{a, b}, all(12, 6, 6))

	c := site.join("c", cluster.Config{}, brief).share(roles, idle)
	three := until(t, "shared by three", []*sharer{a, b, c}, all(12, 4, 4, 4))
	for _, name := range []string{"a", "b"} {
		if kept(two[name], three[name]) != 4 {
			t.Errorf("%s led %v and then %v: roles moved between nodes that stayed", name, two[name], three[name])
		}
	}
	placed := a.Plan().Placed
	for _, s := range []*sharer{a, b, c} {
		if !maps.Equal(placed, s.Plan().Placed) {
			t.Errorf("%s plans otherwise than a", s.Node().Name())
		}
	}

	// One that stops hands its roles over, and keeps its node.
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	again := until(t, "shared by two again", []*sharer{a, c}, all(12, 6, 6))
	for _, name := range []string{"a", "c"} {
		if kept(three[name], again[name]) != 4 {
			t.Errorf("%s led %v and then %v", name, three[name], again[name])
		}
	}
	conn := pgtest.Conn(t, site.dsn)
	var handedOver int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+site.table("history")+" WHERE end_reason <> 'handed_over'").Scan(&handedOver); err != nil {
		t.Fatal(err)
	}
	if handedOver != 0 {
		t.Errorf("%d terms ended otherwise than by a hand-over", handedOver)
	}

	// A node that dies is replaced immediately.
	c.store.kill()
	until(t, "led by the last one", []*sharer{a}, all(12, 12))
}

func TestSpreadFollowsWeights(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	roles := cluster.Partitions("orders", 12)
	a := site.join("a", cluster.Config{}, brief).share(cluster.SpreadConfig{Roles: roles, Weight: 2}, idle)
	b := site.join("b", cluster.Config{}, brief).share(cluster.SpreadConfig{Roles: roles}, idle)
	held := until(t, "shared by weight", []*sharer{a, b}, all(12, 8, 4))
	if len(held["a"]) != 8 {
		t.Errorf("a leads %d roles", len(held["a"]))
	}
}

func TestSpreadLeavesUnplacedRolesVacant(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	roles := cluster.Partitions("orders", 2)
	roles[1].Requires = map[string]string{"zone": "eu"}
	config := cluster.SpreadConfig{Roles: roles}
	a := site.join("a", cluster.Config{}, brief).share(config, idle)
	until(t, "led where it may be", []*sharer{a}, all(1, 1))
	want := []cluster.UnplacedRole{{Role: "orders/1", Reason: "no live node has the label zone=eu"}}
	if got := a.Unplaced(); !slices.Equal(got, want) {
		t.Errorf("unplaced: %v", got)
	}
	if got := a.Plan().Unplaced; !slices.Equal(got, want) {
		t.Errorf("unplaced in the plan: %v", got)
	}

	b := site.join("b", cluster.Config{Labels: map[string]string{"zone": "eu"}}, brief).share(config, idle)
	held := until(t, "led by the one that may", []*sharer{a, b}, all(2, 1, 1))
	if !slices.Equal(held["b"], []string{"orders/1"}) {
		t.Errorf("b leads %v", held["b"])
	}

	// Without its label the node must not keep leading.
	err := b.Node().UpdateDescription(within(t), func(d *tenure.Description) { d.Labels = nil })
	if err != nil {
		t.Fatal(err)
	}
	until(t, "given up", []*sharer{a, b}, func(held map[string][]string) bool {
		return len(held["a"])+len(held["b"]) == 1 && !slices.Contains(held["b"], "orders/1") && !slices.Contains(held["a"], "orders/1")
	})
}

func TestSpreadHandsOverWhenDraining(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	roles := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 9)}
	var sharers []*sharer
	for _, name := range []string{"a", "b", "c"} {
		sharers = append(sharers, site.join(name, cluster.Config{}, brief).share(roles, idle))
	}
	before := until(t, "shared", sharers, all(9, 3, 3, 3))
	if err := sharers[0].Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	after := until(t, "shared by the others", sharers, all(9, 0, 4, 5))
	for _, name := range []string{"b", "c"} {
		if kept(before[name], after[name]) != 3 {
			t.Errorf("%s led %v and then %v", name, before[name], after[name])
		}
	}
	var otherwise int
	query := fmt.Sprintf("SELECT count(*) FROM %s WHERE node_id = $1 AND ended_at > (SELECT min(acquired_at) FROM %s) AND end_reason <> 'handed_over'",
		site.table("history"), site.table("terms"))
	if err := pgtest.Conn(t, site.dsn).QueryRow(t.Context(), query, sharers[0].ID()).Scan(&otherwise); err != nil {
		t.Fatal(err)
	}
	if otherwise != 0 {
		t.Errorf("%d roles were not handed over", otherwise)
	}
	if err := sharers[0].Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	until(t, "shared by all again", sharers, all(9, 3, 3, 3))
	if err := sharers[1].Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := sharers[1].stop(); err != nil && !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("the run of a member that left: %v", err)
	}
	until(t, "shared by those that are left", []*sharer{sharers[0], sharers[2]}, all(9, 4, 5))
}

// A handover that an operator requests goes to a node that did not campaign for the
// role. The reservation lasts for a check interval, which a busy machine must not miss.
func TestSpreadAcceptsManualHandOver(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 4)}
	a := site.join("a", cluster.Config{}).share(config, idle)
	b := site.join("b", cluster.Config{}).share(config, idle)
	held := until(t, "shared", []*sharer{a, b}, all(4, 2, 2))
	role := held["a"][0]
	err := site.store().Request(within(t), tenure.Request{Kind: tenure.RequestHandOver, Role: role, Target: b.ID()})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "handed over", []*sharer{a, b}, func(held map[string][]string) bool { return slices.Contains(held["b"], role) })
}

// Roles whose node does not lead them are led by others.
func TestSpreadTakesOverForIdleMember(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 4)}
	refused := make(chan string, 100)
	refuse := func(_ context.Context, term *tenure.Term) error {
		refused <- term.Role().Name()
		return tenure.Done
	}
	a := site.join("a", cluster.Config{}, brief).share(config, idle)
	until(t, "led by the only one", []*sharer{a}, all(4, 4))
	b := site.join("b", cluster.Config{}, brief).share(config, refuse)
	for given := map[string]bool{}; len(given) < 2; { // a may lead the first again before it gives the second away
		given[testkit.Receive(t, refused, patience, "b is not given two roles")] = true
	}
	until(t, "led in the stead of the other", []*sharer{a, b}, all(4, 0, 4))
}

// A role whose node does not lead it stays where it is led: it would have no leader again
// and again if it was handed back.
func TestSpreadHandsNoRoleBackToIdleMember(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	db := tenuretest.NewDatabase()
	join := func(name string) node {
		config := quiet(name)
		config.CheckInterval = interval
		m, err := cluster.Join(within(t), db, config, cluster.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		return node{Member: m, t: t}
	}
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 2)}
	terms := make(chan *tenure.Term, 100)
	next := func() *tenure.Term {
		t.Helper()
		return testkit.Receive(t, terms, patience, "a role has no leader")
	}
	join("a").share(config, func(ctx context.Context, term *tenure.Term) error {
		terms <- term
		return idle(ctx, term)
	})
	next()
	next()
	join("b").share(config, func(context.Context, *tenure.Term) error { return tenure.Done })
	select {
	case <-next().Context().Done():
		t.Error("the role was handed over to the idle member a second time")
	case <-time.After(30 * interval): // a time without hand-overs
	}
}

// Work that returns early leads again, later.
func TestSpreadCampaignsAgainAfterWorkReturns(t *testing.T) {
	t.Parallel()
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 1)}
	times := make(chan time.Time, 10)
	fail := func(context.Context, *tenure.Term) error {
		times <- time.Now()
		return errors.New("no luck")
	}
	a := newSite(t).join("a", cluster.Config{}, brief).share(config, fail)
	var last time.Time
	rounds := 3
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		led := testkit.Receive(t, times, patience, "the role is not led again")
		if interval := a.Node().Timing().CheckInterval; led.Sub(last) < interval/2 {
			t.Errorf("led again after %v", led.Sub(last))
		}
		last = led
	}
}

func TestSpreadRejectsSecondRun(t *testing.T) {
	t.Parallel()
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 1)}
	a := newSite(t).join("a", cluster.Config{}, brief).share(config, idle)
	until(t, "led", []*sharer{a}, all(1, 1))
	if err := a.Run(within(t), idle); !errors.Is(err, tenure.ErrAlreadyStarted) {
		t.Errorf("a second run: %v", err)
	}
	if err := a.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := a.stop(); err != nil && !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("the run of a closed member: %v", err)
	}
}

// A run whose context has ended leaves no trace in the registry: other members would plan
// roles for this one, which does not lead them.
func TestSpreadThatEndsAtItsBeginIsLeft(t *testing.T) {
	t.Parallel()
	m, err := cluster.Join(within(t), tenuretest.NewDatabase(), quiet("a"), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(within(t)) }()
	spread, err := m.Spread("orders", cluster.SpreadConfig{Roles: cluster.Partitions("orders", 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := spread.Run(ctx, idle); err != nil {
		t.Errorf("Run: %v; want nil, because its context has ended", err)
	}
	if d := m.Node().Description(); len(d.Spreads) > 0 {
		t.Errorf("the node is still in the spreads %v", d.Spreads)
	}
}

func TestSpreadRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	member := newSite(t).join("a", cluster.Config{}, brief)
	good := cluster.Partitions("orders", 1)
	for name, test := range map[string]struct {
		name   string
		config cluster.SpreadConfig
		want   error
	}{
		"name":        {"", cluster.SpreadConfig{Roles: good}, tenure.ErrInvalidRole},
		"weight":      {"orders", cluster.SpreadConfig{Roles: good, Weight: -1}, tenure.ErrInvalidConfig},
		"move delay":  {"orders", cluster.SpreadConfig{Roles: good, MoveDelay: -1}, tenure.ErrInvalidConfig},
		"never moves": {"orders", cluster.SpreadConfig{Roles: good, MoveDelay: math.MaxInt64}, tenure.ErrInvalidConfig},
		"role":        {"orders", cluster.SpreadConfig{Roles: []cluster.SpreadRole{{}}}, tenure.ErrInvalidRole},
		"group":       {"orders", cluster.SpreadConfig{Roles: good, Election: tenure.ElectionConfig{Group: "g", GroupLimit: 1}}, tenure.ErrInvalidConfig},
		"twice":       {"orders", cluster.SpreadConfig{Roles: slices.Concat(good, good)}, tenure.ErrInvalidConfig},
	} {
		if _, err := member.Spread(test.name, test.config); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awaitDefinition waits until the definition of the shared roles is stored.
func awaitDefinition(t *testing.T, store cluster.Store) {
	t.Helper()
	testkit.Await(t, "the definition is stored", func() bool {
		_, err := cluster.PlanRebalance(t.Context(), store, "orders")
		return !errors.Is(err, cluster.ErrUnknownSpread)
	})
}
