package cluster_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// preferring makes the first n roles prefer a node.
func preferring(node string, n, of int) cluster.SpreadConfig {
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", of)}
	for i := range n {
		config.Roles[i].PreferredNode = node
	}
	return config
}

func TestRebalanceMovesRolesToPreferredNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := preferring("b", 3, 6) // those that the first plan does not move
	a := site.join("a", cluster.Config{}, brief).share(config, idle)
	until(t, "led by the only one", []*sharer{a}, all(6, 6))
	b := site.join("b", cluster.Config{}, brief).share(config, idle)
	sharers := []*sharer{a, b}
	before := until(t, "shared", sharers, all(6, 3, 3))
	store := site.store()
	ctx := within(t)

	// Every role is led by the node that it prefers; change that on purpose.
	for i, role := range []string{"orders/0", "orders/1"} {
		request := tenure.Request{Kind: tenure.RequestHandOver, Role: role, Target: a.ID(), By: "test"}
		if slices.Contains(before["b"], role) {
			if err := store.Request(ctx, request); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	until(t, "handed over by hand", sharers, func(held map[string][]string) bool {
		return slices.Contains(held["a"], "orders/0") && slices.Contains(held["a"], "orders/1")
	})

	plan, err := cluster.PlanRebalance(ctx, store, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range plan.Nodes {
		if share.After != 3 {
			t.Errorf("%s would lead %d roles", share.Name, share.After)
		}
	}
	if len(plan.Moves) < 2 || len(plan.Unplaced) != 0 || len(plan.Vacant) != 0 {
		t.Errorf("the plan is %+v", plan)
	}
	last := 0
	if err := plan.Apply(ctx, store, "test", func(moved int) { last = moved }); err != nil {
		t.Fatal(err)
	}
	if last != len(plan.Moves) {
		t.Errorf("progress ended at %d of %d", last, len(plan.Moves))
	}
	want := []string{"orders/0", "orders/1", "orders/2"}
	until(t, "where they want to be", sharers, func(held map[string][]string) bool {
		return slices.Equal(held["b"], want) && len(held["a"]) == 3
	})
	if plan, err = cluster.PlanRebalance(ctx, store); err != nil || len(plan.Moves) != 0 {
		t.Errorf("once more: %+v, %v", plan, err)
	}
}

// TestHandOversInSpreadWaitForNoPause: a member campaigns for a role before the leader
// steps down, also for a role that it has just handed over itself.
func TestHandOversInSpreadWaitForNoPause(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 2)}
	a := site.join("a", cluster.Config{}).share(config, idle)
	b := site.join("b", cluster.Config{}).share(config, idle)
	sharers := []*sharer{a, b}
	held := until(t, "shared", sharers, all(2, 1, 1))
	store, role := site.store(), held["a"][0]
	for i, name := range []string{"b", "a", "b"} {
		target := []*sharer{b, a}[i%2]
		request := tenure.Request{Kind: tenure.RequestHandOver, Role: role, Target: target.ID(), By: "test"}
		if err := store.Request(within(t), request); err != nil {
			t.Fatal(err)
		}
		until(t, "handed over", sharers, func(held map[string][]string) bool {
			return slices.Contains(held[name], role)
		})
	}
	// Other roles have moved to keep the shares equal. The check interval is 5 s, and the
	// pause after a step-down as long.
	until(t, "shared again", sharers, all(2, 1, 1))
	for _, node := range sharers {
		if vacancies := node.Node().Stats().Vacancies; vacancies.Count != vacancies.Buckets[2500*time.Millisecond] {
			t.Errorf("of %d vacancies, some were longer than half a check interval: %v", vacancies.Count, vacancies.Buckets)
		}
	}
}

func TestRebalanceListsUnplacedRoles(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 2)}
	config.Roles[1].Requires = map[string]string{"zone": "eu"}
	a := site.join("a", cluster.Config{}, brief).share(config, idle)
	until(t, "led where it may be", []*sharer{a}, all(1, 1))
	store := site.store()
	awaitDefinition(t, store)
	plan, err := cluster.PlanRebalance(within(t), store, "orders")
	want := []cluster.UnplacedRole{{Role: "orders/1", Reason: "no live node has the label zone=eu"}}
	if err != nil || !slices.Equal(plan.Unplaced, want) || len(plan.Moves) != 0 {
		t.Errorf("%+v, %v", plan, err)
	}
	share := cluster.NodeShare{Node: a.ID(), Name: "a", Before: 1, After: 1}
	if !slices.Equal(plan.Nodes, []cluster.NodeShare{share}) {
		t.Errorf("the shares are %+v", plan.Nodes)
	}
	if _, err := cluster.PlanRebalance(within(t), store, "mails"); !errors.Is(err, cluster.ErrUnknownSpread) {
		t.Errorf("an unknown spread: %v", err)
	}
}
