package dialects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/testkit"
)

// The work of a term takes as long as it needs; afterwards another node can lead.
func TestBackendRunLeadsUntilDone(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		a, b := c.join("a"), c.join("b")
		var numbers []int64
		work := func(_ context.Context, term *tenure.Term) error {
			numbers = append(numbers, term.Number())
			if !term.Valid() {
				t.Errorf("term %d is not trusted when its work begins", term.Number())
			}
			return tenure.Done
		}
		for _, m := range []*member{a, b, a} {
			name := fmt.Sprintf("run-%d", len(numbers))
			if err := m.election(name).Run(soon(t), work); err != nil {
				t.Fatal(err)
			}
		}
		if len(numbers) != 3 {
			t.Errorf("three roles had the terms %v", numbers)
		}
		first, second := a.election(backendRole), b.election(backendRole)
		term, err := first.Campaign(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-term.Stopping()
			_ = term.Resign(context.Background()) // the next term shows whether it did
		}()
		if err := first.StepDown(soon(t)); err != nil {
			t.Fatal(err)
		}
		next, err := second.Campaign(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if next.Number() <= term.Number() {
			t.Errorf("term %d follows term %d", next.Number(), term.Number())
		}
		if err := next.Resign(soon(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// The time from an external request to the next term is that of two polls and two
// transactions.
func TestBackendStepsDownFast(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		const rounds = 7
		c := newCluster(t, k)
		c.config.Lease, c.config.CheckInterval, c.config.Retry = time.Minute, time.Minute, nil
		a, b := c.join("a").campaign(backendRole), c.join("b").campaign(backendRole)
		outside := newBackend(t, k.connect(t, c.source), k.dialect, c.lease)
		var took []time.Duration
		last := leaderOf(t, 0, a, b)
		for range rounds {
			begun := time.Now()
			request := tenure.Request{Kind: tenure.RequestStepDown, Role: backendRole, By: "the test"}
			if err := outside.Request(soon(t), request); err != nil {
				t.Fatal(err)
			}
			next := leaderOf(t, last.Number(), a, b)
			took = append(took, time.Since(begun))
			if cause := ended(t, last); !errors.Is(cause, tenure.ErrSteppedDown) {
				t.Errorf("the term ended with %v; want ErrSteppedDown", cause)
			}
			last = next
		}
		slices.Sort(took)
		t.Logf("from the request to the next term: %v (median of %d, from %v to %v)",
			took[rounds/2], rounds, took[0], took[rounds-1])
		if median := took[rounds/2]; median > c.config.CheckInterval/6 {
			t.Errorf("the median is %v: the standby was not woken but waited for its check interval", median)
		}
	})
}

// The target acquires the role although other nodes are also candidates.
func TestBackendHandsOverToTarget(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.Lease = time.Minute
		c.config.CheckInterval = patience // for which a role is reserved that is handed over
		leader := c.join("leader").campaign(backendRole)
		last := leads(t, leader)
		var others []*member
		for i := range 3 {
			m := c.join(fmt.Sprintf("other-%d", i))
			m.campaign(backendRole)
			others = append(others, m)
		}
		for i := range 3 {
			// A node that has met an earlier reservation waits for its end first.
			target := c.join(fmt.Sprintf("target-%d", i))
			e := target.campaign(backendRole)
			if i == 0 {
				if err := leader.HandOver(soon(t), target.ID()); err != nil {
					t.Fatal(err)
				}
			} else {
				err := target.backend.Request(soon(t), tenure.Request{Kind: tenure.RequestHandOver, Role: backendRole, Target: target.ID()})
				if err != nil {
					t.Fatal(err)
				}
			}
			next := leads(t, e)
			records, err := target.backend.History(soon(t), history.Query{Role: backendRole, Limit: 2})
			if err != nil || len(records) != 2 || records[0].Term != next.Number() || records[1].Term != last.Number() {
				t.Errorf("%+v, %v: want term %d of %s right after term %d", records, err, next.Number(), target.Name(), last.Number())
			}
			last = next
		}
		stranger := tenure.Request{Kind: tenure.RequestHandOver, Role: backendRole, Target: leader.Node().ID()}
		stranger.Target[0] ^= 1
		if err := others[0].backend.Request(soon(t), stranger); !errors.Is(err, tenure.ErrUnknownNode) {
			t.Errorf("a hand-over to an unknown node: %v; want ErrUnknownNode", err)
		}
		vacant := tenure.Request{Kind: tenure.RequestStepDown, Role: "vacant"}
		if err := others[0].backend.Request(soon(t), vacant); !errors.Is(err, tenure.ErrNoLeader) {
			t.Errorf("a request for a vacant role: %v; want ErrNoLeader", err)
		}
	})
}

// Standbys acquire the roles of a node that closes or resigns without waiting for its
// lease or for their next check.
func TestBackendCloseReleasesRoles(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.Lease, c.config.CheckInterval, c.config.Retry = time.Minute, time.Minute, nil
		a, b := c.join("a"), c.join("b")
		leads(t, a.campaign(backendRole))
		second := b.campaign(backendRole)
		testkit.Await(t, "the standby has tried", func() bool { return second.State() == tenure.Follower })
		successor := func(next *tenure.Election, leave func(context.Context) error) {
			t.Helper()
			begun := time.Now()
			if err := leave(soon(t)); err != nil {
				t.Fatal(err)
			}
			left := time.Now()
			leads(t, next)
			took := time.Since(left)
			t.Logf("leaving took %v, the next term began %v later", left.Sub(begun), took)
			if took > slack {
				t.Errorf("the next term began %v after the last leader had left", took)
			}
		}
		successor(second, a.Close)
		third := c.join("c").campaign(backendRole)
		testkit.Await(t, "the standby has tried", func() bool { return third.State() == tenure.Follower })
		successor(third, second.Shutdown)
	})
}

// A standby detects an expired lease long before its next check interval.
func TestBackendStandbyDetectsExpiredLease(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.Lease = 3 * time.Second
		leader := c.join("leader")
		leads(t, leader.campaign(backendRole))
		c.config.Lease, c.config.CheckInterval, c.config.Retry = time.Minute, time.Minute, nil
		standby := c.join("standby").campaign(backendRole)
		testkit.Await(t, "the standby has tried", func() bool { return standby.State() == tenure.Follower })
		if err := leader.db.Close(); err != nil {
			t.Fatal(err)
		}
		vanished := time.Now()
		leads(t, standby)
		if took := time.Since(vanished); took > 3*time.Second+slack {
			t.Errorf("a leader with a lease of three seconds was replaced after %v", took)
		}
	})
}

// Each change has the name and host of the leader.
func TestBackendObserversSeeEachChange(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.CheckInterval = time.Minute // changes are seen through notifications only
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		outside := newBackend(t, k.connect(t, c.source), k.dialect, c.lease)
		if err := outside.Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		changes := tenure.Observe(ctx, outside, c.config, tenure.NamedRole(backendRole))
		next := func() tenure.LeaderChange {
			t.Helper()
			return testkit.Receive(t, changes, patience, "nothing was observed")
		}
		a := c.join("a")
		e := a.campaign(backendRole)
		change := next()
		if change.Leader == nil || change.Leader.NodeName != "a" || change.Leader.NodeID != a.ID() || change.Leader.Host == "" {
			t.Fatalf("observed %+v; want that a leads", change.Leader)
		}
		if !change.Leader.Valid() || change.Leader.ValidFor > c.config.Lease {
			t.Errorf("the lease of %v is said to run for %v", c.config.Lease, change.Leader.ValidFor)
		}
		if err := e.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		if change := next(); change.Leader != nil || change.Previous == nil || change.Previous.NodeName != "a" {
			t.Errorf("observed %+v after %+v; want no leader after a", change.Leader, change.Previous)
		}
		cancel()
		for range changes { // until Observe has ended
		}
	})
}

// Three nodes lead hundreds of roles, acquire them in batches, and take over all of them
// from one another.
func TestBackendAcquiresManyRolesInBatches(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		const roles = 200
		c := newCluster(t, k)
		c.config.Lease = 10 * time.Second // while all kinds are busy at the same time
		var members []*member
		for _, name := range []string{"a", "b", "c"} {
			m := c.join(name)
			for i := range roles {
				m.campaign(fmt.Sprintf("role-%03d", i))
			}
			members = append(members, m)
		}
		held := func() (sum int, each []int) {
			for _, m := range members {
				n := 0
				for _, e := range m.Elections() {
					if e.IsLeader() {
						n++
					}
				}
				each = append(each, n)
				sum += n
			}
			return sum, each
		}
		testkit.Await(t, "all roles are led", func() bool { sum, _ := held(); return sum == roles })
		_, each := held()
		t.Logf("held: %v", each)

		backend := members[2].backend
		leaders, err := backend.Leaders(soon(t))
		if err != nil || len(leaders) != roles {
			t.Errorf("there are %d leaders, %v; want %d", len(leaders), err, roles)
		}
		if names, err := backend.Roles(soon(t)); err != nil || len(names) != roles || names[0] != "role-000" {
			t.Errorf("there are %d roles, %v; want %d", len(names), err, roles)
		}
		if nodes, err := backend.Nodes(soon(t)); err != nil || len(nodes) != 3 || nodes[0].Name != "a" || nodes[0].ID != members[0].ID() {
			t.Errorf("the nodes are %+v, %v; want a, b and c", nodes, err)
		}
		begun := time.Now()
		if err := members[0].Close(soon(t)); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "all roles are led again", func() bool { sum, _ := held(); return sum == roles })
		_, each = held()
		t.Logf("%v after the first node began to close, held: %v", time.Since(begun), each)
		if nodes, err := backend.Nodes(soon(t)); err != nil || len(nodes) != 2 {
			t.Errorf("the nodes are %+v, %v; want b and c", nodes, err)
		}
	})
}
