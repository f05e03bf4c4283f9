package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

func three() cluster.Config { return cluster.Config{MinNodes: 3} }

func TestNodesWaitForMinNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", three())
	err := a.Ready()
	if !errors.Is(err, cluster.ErrTooFewNodes) || !errors.Is(err, tenure.ErrNotActive) ||
		!strings.Contains(err.Error(), "1 of 3 nodes has joined: a") {
		t.Fatalf("alone: %v", err)
	}
	b := site.join("b", three())
	a.seesStatus(b.ID(), cluster.Joining)
	if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "2 of 3 nodes have joined: a, b") {
		t.Fatalf("of two: %v", err)
	}
	election, err := a.Node().Election(cluster.SchedulerRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := site.join("c", three())
	for _, n := range []node{a, b, c} {
		if err := n.WaitReady(within(t)); err != nil {
			t.Fatalf("%s: %v", n.Node().Name(), err)
		}
		for _, other := range []node{a, b, c} {
			n.seesStatus(other.ID(), cluster.Active)
		}
	}
	if _, err := election.WaitForLeadership(within(t)); err != nil {
		t.Errorf("the active node does not lead: %v", err)
	}
	// Active nodes stay active, however many leave; a node that joins then waits.
	for _, n := range []node{b, c} {
		if err := n.Close(within(t)); err != nil {
			t.Fatal(err)
		}
		a.sees(n.ID(), "gone", func(_ cluster.NodeInfo, there bool) bool { return !there })
	}
	if err := a.Ready(); err != nil {
		t.Errorf("when the others left: %v", err)
	}
	late := site.join("late", three())
	if err := late.Ready(); err == nil || !strings.Contains(err.Error(), "2 of 3 nodes have joined: a, late") {
		t.Errorf("the one that came late: %v", err)
	}
}

// Nodes that only watch, whatever their other node roles, and nodes that drain do not
// count toward the minimum. The message names them.
func TestMinNodesCountsNodesThatWork(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	watches := func(c *tenure.Config) { c.NoLeader = true }
	page := site.join("page", cluster.Config{Roles: []cluster.NodeRole{cluster.Observer}})
	viewer := site.join("viewer", cluster.Config{}, watches)
	listener := site.join("listener", cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}}, watches)
	drained := site.join("drained", cluster.Config{})
	if err := drained.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	a := site.join("a", cluster.Config{MinNodes: 2})
	for _, n := range []node{page, viewer, listener} {
		a.seesStatus(n.ID(), cluster.Active)
	}
	a.seesDrained(drained.ID())
	const want = "1 of 2 nodes has joined: a; not counted: page (observer), viewer (observer), listener (observer), drained (draining)"
	if err := a.Ready(); !errors.Is(err, cluster.ErrTooFewNodes) || !strings.Contains(err.Error(), want) {
		t.Errorf("with nodes that do not work: %v; want %q", err, want)
	}
	site.join("worker", cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}})
	if err := a.WaitReady(within(t)); err != nil {
		t.Errorf("with a worker: %v", err)
	}
}

func TestJoiningNodeDoesNotCampaign(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", three(), brief)
	election, err := a.Node().Election(cluster.SchedulerRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// By the time that the next heartbeat is seen the election would have tried.
	first := a.Nodes()[0].LastHeartbeat
	site.Await("a heartbeat", func() bool {
		nodes, err := a.Registry().Nodes(within(t))
		return err == nil && nodes[0].LastHeartbeat.After(first)
	})
	if election.IsLeader() {
		t.Error("a joining node leads")
	}
	// An operator decides that it should continue without the others.
	if err := a.SetStatus(within(t), cluster.Active); err != nil {
		t.Fatal(err)
	}
	if _, err := election.WaitForLeadership(within(t)); err != nil {
		t.Error(err)
	}
}

func TestStartupTimeoutEndsJoin(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.Config{MinNodes: 2, StartupTimeout: 50 * time.Millisecond}
	a := site.join("a", config)
	err := a.WaitReady(within(t))
	if !errors.Is(err, cluster.ErrTooFewNodes) || !strings.Contains(err.Error(), "the startup timeout of 50ms has passed: 1 of 2 nodes has joined: a") {
		t.Fatalf("after the startup timeout: %v", err)
	}
	if again := a.Ready(); again == nil || again.Error() != err.Error() {
		t.Errorf("Ready says %v", again)
	}
	// It waits on.
	b := site.join("b", config)
	a.seesStatus(a.ID(), cluster.Active)
	for _, n := range []node{a, b} {
		if err := n.WaitReady(within(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestWaitReadyEndsWithItsContextAndWithTheMember(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", three())
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if err := a.WaitReady(ctx); !errors.Is(err, reason) || !errors.Is(err, cluster.ErrTooFewNodes) {
		t.Errorf("with an ended context: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- a.WaitReady(within(t)) }()
	if err := a.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("when the member left: %v", err)
	}
	if err := a.Ready(); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestUndrainOfJoiningNodeWaitsAgain(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	config := cluster.Config{MinNodes: 2}
	a := site.join("a", config)
	if err := errors.Join(a.Drain(within(t)), a.Undrain(within(t))); err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(); !errors.Is(err, cluster.ErrTooFewNodes) {
		t.Errorf("a drain and back made a ready: %v", err)
	}
	if err := a.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	b := site.join("b", config)
	b.seesStatus(a.ID(), cluster.Draining)
	if err := b.Ready(); !errors.Is(err, cluster.ErrTooFewNodes) {
		t.Errorf("a draining node counts: %v", err)
	}
	if err := a.Ready(); !errors.Is(err, tenure.ErrNotActive) || errors.Is(err, cluster.ErrTooFewNodes) {
		t.Errorf("the draining node: %v", err)
	}
	c := site.join("c", config)
	if err := errors.Join(b.WaitReady(within(t)), c.WaitReady(within(t))); err != nil {
		t.Fatal(err)
	}
	a.seesStatus(c.ID(), cluster.Active)
	if status := a.Node().Description().Status; status != cluster.Draining {
		t.Errorf("the minimum made a draining node %s", status)
	}
	if err := a.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := a.WaitReady(within(t)); err != nil {
		t.Error(err)
	}
}

func TestReadyReportsLostSession(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	wakeups, stop := a.Node().Subscribe()
	defer stop()
	a.store.kill()
	for deadline := within(t); a.Ready() == nil; {
		select {
		case <-wakeups:
		case <-deadline.Done():
			t.Fatal("the member does not notice that it has no session")
		}
	}
	if err := a.Ready(); !errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("without a session: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := a.WaitReady(ctx); !errors.Is(err, tenure.ErrSessionLost) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a session: %v", err)
	}
}
