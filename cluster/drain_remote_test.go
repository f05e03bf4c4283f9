package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/testkit"
)

// drainNode drains a node as an operator would, without being a member.
func (s site) drainNode(ctx context.Context, id cluster.NodeID, options cluster.DrainOptions) error {
	return cluster.DrainNode(ctx, s.store(), id, options)
}

func TestDrainNodeReportsProgress(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b, c := site.join("a", cluster.Config{}), site.join("b", cluster.Config{}), site.join("c", cluster.Config{})
	role := b.campaign("r")
	leads(t, role)
	heir := c.campaign("r")
	a.campaign("r")
	end := b.works()
	var steps []cluster.DrainProgress
	drains := make(chan struct{})
	drained := start(func() error {
		return site.drainNode(within(t), b.ID(), cluster.DrainOptions{Target: c.ID(), By: "test", Progress: func(p cluster.DrainProgress) {
			steps = append(steps, p)
			if p.Status == cluster.Draining && len(steps) > 0 && !slices.ContainsFunc(steps[:len(steps)-1], isDraining) {
				close(drains)
			}
		}})
	})
	testkit.Receive(t, drains, patience, "the node does not drain")
	if !role.IsLeader() {
		t.Error("the role was given up while work was in flight")
	}
	end()
	if err := result(t, drained); err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; last.Status != cluster.Draining || !last.Drained || last.Leads != 0 {
		t.Errorf("the last progress is %+v", last)
	}
	if !slices.ContainsFunc(steps, func(p cluster.DrainProgress) bool { return p.Leads == 1 }) {
		t.Errorf("no progress reports that it led a role: %+v", steps)
	}
	leads(t, heir)
	if err := cluster.UndrainNode(within(t), site.store(), b.ID(), "test"); err != nil {
		t.Fatal(err)
	}
	a.seesStatus(b.ID(), cluster.Active)
	b.seesStatus(b.ID(), cluster.Active)
	if !b.AcceptsWork() {
		t.Error("the node does not accept work after UndrainNode")
	}
}

func isDraining(p cluster.DrainProgress) bool { return p.Status == cluster.Draining }

func TestDrainNodeRejectsLastNode(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	err := site.drainNode(within(t), a.ID(), cluster.DrainOptions{})
	if !errors.Is(err, tenure.ErrLastNode) || !strings.Contains(err.Error(), "force") {
		t.Errorf("DrainNode: %v; want ErrLastNode that mentions force", err)
	}
	if !a.AcceptsWork() {
		t.Error("the node was drained")
	}
	if err := site.drainNode(within(t), a.ID(), cluster.DrainOptions{Force: true}); err != nil {
		t.Errorf("DrainNode with Force: %v", err)
	}
}

func TestDrainNodeRejectsUnknownNode(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	site.join("b", cluster.Config{})
	if err := site.drainNode(within(t), cluster.NewNodeID(), cluster.DrainOptions{}); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("an unknown node: %v; want ErrUnknownNode", err)
	}
	err := site.drainNode(within(t), a.ID(), cluster.DrainOptions{Target: cluster.NewNodeID()})
	if !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("an unknown target: %v; want ErrUnknownNode", err)
	}
	if err := cluster.UndrainNode(within(t), site.store(), cluster.NewNodeID(), ""); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("undraining an unknown node: %v; want ErrUnknownNode", err)
	}
}

func TestConcurrentDrainNodeCallsBothWait(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{})
	end := b.works()
	first := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{By: "first"}) })
	second := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{By: "second"}) })
	b.seesStatus(b.ID(), cluster.Draining)
	end()
	for _, done := range []<-chan error{first, second} {
		if err := result(t, done); err != nil {
			t.Error(err)
		}
	}
}

// However the two meet, one node of the last two stays active.
func TestConcurrentDrainsLeaveOneNodeActive(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	nodes := [2]node{site.join("a", cluster.Config{}), site.join("b", cluster.Config{})}
	store := site.store()
	for round := range 10 {
		var (
			errs [2]error
			all  sync.WaitGroup
		)
		for i, n := range nodes {
			all.Go(func() { errs[i] = cluster.DrainNode(within(t), store, n.ID(), cluster.DrainOptions{}) })
		}
		all.Wait()
		for i, err := range errs {
			if other := errs[1-i]; err == nil && !errors.Is(other, tenure.ErrLastNode) {
				t.Fatalf("round %d: one was drained, the other operator got %v; want ErrLastNode", round, other)
			} else if err != nil && !errors.Is(err, tenure.ErrLastNode) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if errs[0] != nil && errs[1] != nil {
			t.Fatalf("round %d: both were refused", round)
		}
		for i, err := range errs {
			if err == nil {
				if err := cluster.UndrainNode(within(t), store, nodes[i].ID(), ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestDrainNodeSucceedsIfNodeLeaves(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", patientDrain(100*time.Millisecond))
	b.works()
	drained := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{}) })
	a.seesStatus(b.ID(), cluster.Draining)
	if err := b.Shutdown(within(t)); !errors.Is(err, tenure.ErrWorkRunning) {
		t.Errorf("Shutdown: %v; want ErrWorkRunning", err)
	}
	if err := result(t, drained); err != nil {
		t.Errorf("DrainNode: %v", err)
	}
}

func TestDrainNodeFailsIfUndrained(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{})
	b.works()
	drains, once := make(chan struct{}), sync.Once{}
	drained := start(func() error {
		return site.drainNode(within(t), b.ID(), cluster.DrainOptions{Progress: func(p cluster.DrainProgress) {
			if isDraining(p) {
				once.Do(func() { close(drains) })
			}
		}})
	})
	testkit.Receive(t, drains, patience, "the node does not drain")
	if err := cluster.UndrainNode(within(t), site.store(), b.ID(), "somebody"); err != nil {
		t.Fatal(err)
	}
	if err := result(t, drained); !errors.Is(err, tenure.ErrDrainCanceled) {
		t.Errorf("DrainNode: %v; want ErrDrainCanceled", err)
	}
}

func TestDrainNodeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	leads(t, b.campaign("r"))
	b.works()
	ctx, cancel := context.WithCancelCause(within(t))
	late := errors.New("too late")
	drained := start(func() error {
		return site.drainNode(ctx, b.ID(), cluster.DrainOptions{Progress: func(p cluster.DrainProgress) {
			if isDraining(p) {
				cancel(late)
			}
		}})
	})
	err := result(t, drained)
	if !errors.Is(err, tenure.ErrShutdown) || !errors.Is(err, late) || !strings.Contains(err.Error(), "leads 1 roles") {
		t.Errorf("DrainNode: %v; want ErrShutdown, the cause, and what is left", err)
	}
	a.seesStatus(b.ID(), cluster.Draining)
}
