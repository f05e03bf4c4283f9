package cluster_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/testkit"
)

// changesOf returns the status changes of a node with their requesters, oldest first.
func (s site) changesOf(id cluster.NodeID) []string {
	s.t.Helper()
	records, err := s.store().NodeHistory(within(s.t), history.Query{Node: id.String()})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, r := range slices.Backward(records) {
		change := r.Status
		if r.By != "" {
			change += " by " + r.By
		}
		all = append(all, change)
	}
	return all
}

// awaitRequester waits until the registry names want as the requester of the status.
func (s site) awaitRequester(id cluster.NodeID, want string) {
	s.t.Helper()
	store := s.store()
	testkit.Await(s.t, "a status with the requester "+want, func() bool {
		members, err := store.Members(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return slices.ContainsFunc(members, func(m tenure.Member) bool { return m.ID == id && m.StatusBy == want })
	})
}

// The history names the requester of a request, and none for what the node does
// on its own. If two parties request the same, the later one is recorded.
func TestRegistryRecordsRequester(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{})
	leads(t, b.campaign("r"))
	end := b.works()
	first := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{By: "first"}) })
	site.awaitRequester(b.ID(), "first")
	second := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{By: "second"}) })
	site.awaitRequester(b.ID(), "second")
	end()
	for _, done := range []<-chan error{first, second} {
		if err := result(t, done); err != nil {
			t.Error(err)
		}
	}
	terms, err := site.store().History(within(t), history.Query{Role: "r"})
	if err != nil || len(terms) != 1 || terms[0].Reason != history.EndSteppedDown || terms[0].By != "second" {
		t.Errorf("%+v, %v; want a term that the second one ended", terms, err)
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Error(err)
	}
	if err := b.Drain(within(t)); err != nil {
		t.Error(err)
	}
	if err := cluster.UndrainNode(within(t), site.store(), b.ID(), "third"); err != nil {
		t.Error(err)
	}
	if err := b.Shutdown(within(t)); err != nil {
		t.Error(err)
	}
	want := []string{"active", "draining by first", "active", "draining", "active by third", "draining", "left"}
	if got := site.changesOf(b.ID()); !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
}

// The terms of roles handed over during a drain name its requester; later moves
// name none.
func TestTermRecordsRequesterOfTheMove(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	roles := cluster.SpreadConfig{Roles: cluster.Partitions("orders", 4)}
	a := site.join("a", cluster.Config{}, brief).share(roles, idle)
	b := site.join("b", cluster.Config{}, brief).share(roles, idle)
	both := []*sharer{a, b}
	until(t, "shared by two", both, all(4, 2, 2))
	count := func(by string) int {
		t.Helper()
		terms, err := site.store().History(within(t), history.Query{Node: b.ID().String()})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, term := range terms {
			if !term.Ended.IsZero() && term.By == by && term.Reason == history.EndHandedOver {
				n++
			}
		}
		return n
	}
	if err := cluster.DrainNode(within(t), site.store(), b.ID(), cluster.DrainOptions{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	until(t, "led by the one in service", both, all(4, 0, 4))
	if n := count("ann"); n != 2 {
		t.Errorf("%d terms were handed over for ann; want 2", n)
	}
	if err := cluster.UndrainNode(within(t), site.store(), b.ID(), "bob"); err != nil {
		t.Fatal(err)
	}
	until(t, "shared by two again", both, all(4, 2, 2))
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	until(t, "led by the other one", both, all(4, 0, 4))
	if ann, bob, none := count("ann"), count("bob"), count(""); ann != 2 || bob != 0 || none != 2 {
		t.Errorf("terms were handed over for ann %d times, for bob %d, without a requester %d; want 2, 0, 2", ann, bob, none)
	}
}

// A node that dies while it drains has a requester for the drain and none for
// its death.
func TestDeadNodeHasNoRequester(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	b.works()
	drained := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{By: "ann"}) })
	a.seesStatus(b.ID(), cluster.Draining)
	b.store.kill()
	if err := result(t, drained); !errors.Is(err, cluster.ErrNodeDied) {
		t.Errorf("DrainNode: %v; want ErrNodeDied", err)
	}
	if got, want := site.changesOf(b.ID()), []string{"active", "draining by ann", "dead"}; !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
}
