package cluster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/postgres"
)

func TestWatchNeedsNoMember(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(site) cluster.Store{
		"listening": func(s site) cluster.Store { return s.store() },
		"asking":    func(s site) cluster.Store { return deaf{s.store()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := newSite(t)
			gateway := site.join("gateway", cluster.Config{Roles: []cluster.NodeRole{cluster.Gateway}})
			ctx, cancel := context.WithCancel(t.Context())
			config := tenure.Config{Logger: logger(t), CheckInterval: time.Hour}
			if name == "asking" {
				config.CheckInterval = 50 * time.Millisecond
			}
			changes := cluster.Watch(ctx, store(site), config, cluster.Filter{Role: cluster.Worker})
			if first := receive(t, changes); first.Kind != cluster.Snapshot || len(first.Nodes) != 0 {
				t.Errorf("first came %+v", first)
			}
			worker := site.join("worker", cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}, Address: "10.0.0.1"})
			if change := receive(t, changes); change.Kind != cluster.Joined || change.Node.ID != worker.ID() || len(change.Nodes) != 1 {
				t.Errorf("then came %+v", change)
			}
			err := worker.Node().UpdateDescription(within(t), func(d *tenure.Description) { d.Address = "10.0.0.2" })
			if err != nil {
				t.Fatal(err)
			}
			if change := receive(t, changes); change.Kind != cluster.Updated || change.Node.Address != "10.0.0.2" {
				t.Errorf("then came %+v", change)
			}
			worker.store.kill()
			if change := receive(t, changes); change.Kind != cluster.Left || change.Node.Status != cluster.Dead || len(change.Nodes) != 0 {
				t.Errorf("then came %+v", change)
			}
			cancel()
			for change := range changes {
				t.Errorf("after the end came %+v", change)
			}
			if err := gateway.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}

// deaf is a store that sends no notifications.
type deaf struct{ cluster.Store }

var _ tenure.Listener = (*postgres.Backend)(nil) // the method that deaf hides

func TestWatchSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.join("a", cluster.Config{})
	application := cluster.NewNodeID().String()
	db := site.NewBackend(func(c *postgres.Config) { c.ApplicationName = application })
	ctx, cancel := context.WithCancel(t.Context())
	changes := cluster.Watch(ctx, db, tenure.Config{Logger: logger(t), CheckInterval: 100 * time.Millisecond}, cluster.Filter{})
	defer func() {
		cancel()
		ends(t, changes)
	}()
	if first := receive(t, changes); len(first.Nodes) != 1 {
		t.Fatalf("first came %+v", first)
	}
	site.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'", application)
	b := site.join("b", cluster.Config{})
	if change := receive(t, changes); change.Kind != cluster.Joined || change.Node.ID != b.ID() {
		t.Errorf("then came %+v", change)
	}
}

func TestWatchEndsWithItsContextAndWithTheMember(t *testing.T) {
	t.Parallel()
	a := newSite(t).join("a", cluster.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	first, second, neverRead := a.Watch(ctx, cluster.Filter{}), a.Watch(t.Context(), cluster.Filter{}), a.Watch(t.Context(), cluster.Filter{})
	receive(t, first)
	receive(t, second)
	cancel()
	ends(t, first)
	if err := a.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	ends(t, second)
	ends(t, neverRead)
	ends(t, a.Watch(t.Context(), cluster.Filter{}))
}

// ends waits until a channel is closed, and ignores what it receives before.
func ends(t *testing.T, changes <-chan cluster.Change) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
		case <-late:
			t.Fatal("the channel is not closed")
		}
	}
}

func TestMembersSeeTheSameNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	var nodes []node
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		nodes = append(nodes, site.join(name, cluster.Config{}))
	}
	stay := nodes[:3]
	site.settle(nodes...)
	begun := time.Now()
	for _, gone := range nodes[3:] { // several die at the same time
		gone.store.kill()
	}
	want := []cluster.NodeID{stay[0].ID(), stay[1].ID(), stay[2].ID()}
	for _, n := range stay {
		agreed := false
		for change := range n.Watch(within(t), cluster.Filter{}) {
			var ids []cluster.NodeID
			for _, info := range change.Nodes {
				ids = append(ids, info.ID)
			}
			if agreed = slices.Equal(ids, want); agreed {
				break
			}
		}
		if !agreed {
			t.Errorf("%s sees %+v", n.Node().Name(), n.Nodes())
		}
	}
	t.Logf("three simultaneous deaths were seen after %v", time.Since(begun))
}
