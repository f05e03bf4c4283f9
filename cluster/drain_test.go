package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/testkit"
)

// campaign makes a member campaign for a role.
func (n node) campaign(role string) *tenure.Election {
	n.t.Helper()
	e, err := n.Node().Election(tenure.NamedRole(role))
	if err == nil {
		err = e.Start(context.Background())
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return e
}

// leads waits until an election leads.
func leads(t testing.TB, e *tenure.Election) *tenure.Term {
	t.Helper()
	term, err := e.WaitForLeadership(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// works begins a piece of work that ends with the returned function, or with
// the test.
func (n node) works() (end func()) {
	n.t.Helper()
	guard, ok := n.InFlight().Enter()
	if !ok {
		n.t.Fatal("work was refused")
	}
	n.t.Cleanup(guard.Done)
	return guard.Done
}

// seesDrained waits until the node sees that a node is drained.
func (n node) seesDrained(id cluster.NodeID) {
	n.t.Helper()
	n.sees(id, "drained", func(info cluster.NodeInfo, there bool) bool {
		return there && info.Status == cluster.Draining && info.Drained
	})
}

// everyStatus lets all nodes through.
var everyStatus = cluster.Filter{Statuses: []cluster.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining, cluster.Dead}}

// seesGone waits until the node no longer sees another node.
func (n node) seesGone(id cluster.NodeID) {
	n.t.Helper()
	for range n.Watch(within(n.t), everyStatus) { // at first, and at every change
		if !slices.ContainsFunc(n.Nodes(), func(info cluster.NodeInfo) bool { return info.ID == id }) {
			return
		}
	}
	n.t.Fatalf("%s still sees %s; it sees %+v", n.Node().Name(), id, n.Nodes())
}

// start runs a function in a goroutine and returns a channel for its error.
func start(fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return done
}

// result waits for the error of a function that start runs.
func result(t testing.TB, done <-chan error) error {
	t.Helper()
	return testkit.Receive(t, done, patience, "no end came")
}

func patientDrain(limit time.Duration) cluster.Config {
	return cluster.Config{Shutdown: cluster.ShutdownConfig{DrainTimeout: limit}}
}

func TestDrainIsUndoneByUndrain(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	e := b.campaign("r")
	leads(t, e)
	if err := b.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	if e.IsLeader() || b.AcceptsWork() || b.ShutdownRequested() {
		t.Errorf("drained: leads %v, accepts work %v, shuts down %v", e.IsLeader(), b.AcceptsWork(), b.ShutdownRequested())
	}
	if err := b.Ready(); !errors.Is(err, tenure.ErrNotActive) {
		t.Errorf("Ready while drained: %v; want ErrNotActive", err)
	}
	a.seesDrained(b.ID())
	if err := b.Drain(within(t)); err != nil {
		t.Errorf("draining again: %v", err)
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	a.seesStatus(b.ID(), cluster.Active)
	leads(t, e)
	if !b.AcceptsWork() {
		t.Error("the node accepts no work after Undrain")
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Errorf("undraining again: %v", err)
	}
}

// No role is released before work in flight has ended, and Undrain keeps the roles
// that were not released.
func TestUndrainCancelsDrain(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	term := leads(t, b.campaign("r"))
	b.works()
	drained := start(func() error { return b.Drain(within(t)) })
	a.seesStatus(b.ID(), cluster.Draining)
	if !term.Valid() {
		t.Error("the role was given up while work was in flight")
	}
	if _, ok := b.InFlight().Enter(); ok {
		t.Error("work was accepted")
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := result(t, drained); !errors.Is(err, tenure.ErrDrainCanceled) {
		t.Errorf("the drain ended with %v; want ErrDrainCanceled", err)
	}
	a.seesStatus(b.ID(), cluster.Active)
	if !term.Valid() || !b.AcceptsWork() {
		t.Errorf("back: term trusted %v, accepts work %v", term.Valid(), b.AcceptsWork())
	}
}

func TestDrainContinuesWithoutCaller(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	end := b.works()
	impatient, cancel := context.WithCancel(context.Background())
	drained := start(func() error { return b.Drain(impatient) })
	a.seesStatus(b.ID(), cluster.Draining)
	cancel()
	if err := result(t, drained); !errors.Is(err, tenure.ErrShutdown) || !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v; want ErrShutdown and the context's error", err)
	}
	end()
	a.seesDrained(b.ID())
}

// A node that waits for the minimum of nodes waits on when it was drained and
// taken back.
func TestDrainedJoiningNodeKeepsWaiting(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{MinNodes: 3})
	if err := b.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	a.seesDrained(b.ID())
	if err := b.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	a.seesStatus(b.ID(), cluster.Joining)
}

// The session ends in the middle: the drain ends in the next one.
func TestDrainEndsInTheNextSession(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	e := b.campaign("r")
	leads(t, e)
	end := b.works()
	drained := start(func() error { return b.Drain(within(t)) })
	a.seesStatus(b.ID(), cluster.Draining)
	comeBack := b.store.hold() // or a may read of the death and of the next session together
	defer comeBack()
	site.exec("SELECT pg_terminate_backend(pid) FROM "+site.table("nodes")+" WHERE id = $1", b.ID())
	a.seesStatus(b.ID(), cluster.Dead)
	comeBack()
	end()
	if err := result(t, drained); err != nil {
		t.Errorf("Drain: %v", err)
	}
	a.seesDrained(b.ID())
	if e.IsLeader() {
		t.Error("the node leads in its new session")
	}
}

// The session ends while the work under a term keeps the drain.
func TestDrainLosesTheSessionOfATerm(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	term := leads(t, b.campaign("r"))
	guard, err := term.Guard()
	if err != nil {
		t.Fatal(err)
	}
	drained := start(func() error { return b.Drain(within(t)) })
	<-term.Stopping()
	site.exec("SELECT pg_terminate_backend(pid) FROM "+site.table("nodes")+" WHERE id = $1", b.ID())
	<-term.Context().Done()
	guard.Done()
	if err := result(t, drained); err != nil {
		t.Errorf("Drain: %v", err)
	}
	a.seesDrained(b.ID())
}

func TestDrainHandsOverToTheLeastLoaded(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	loaded := func(percent float64) func(*tenure.Config) {
		return func(c *tenure.Config) {
			c.Load = func() tenure.Load { return tenure.Load{CPU: percent, Memory: percent} }
		}
	}
	leaver := site.join("leaver", cluster.Config{Shutdown: cluster.ShutdownConfig{HandOver: true}}, brief)
	role := leaver.campaign("r")
	leads(t, role)
	busy := site.join("busy", cluster.Config{}, brief, loaded(90))
	idle := site.join("idle", cluster.Config{}, brief, loaded(10))
	worker := site.join("worker", cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}}, brief, loaded(1))
	elections := map[string]*tenure.Election{}
	for _, n := range []node{busy, idle, worker} {
		elections[n.Node().Name()] = n.campaign("r")
		leaver.seesLoad(n.ID(), "there with its load", func(info cluster.NodeInfo, there bool) bool { return there && info.Load() > 0 })
	}
	if err := leaver.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	leads(t, elections["idle"])
	if reason := site.lastReason("r"); reason != string(history.EndHandedOver) {
		t.Errorf("the term ended as %q; want handed_over", reason)
	}
}

func TestDrainHandsOverToTheConfiguredNode(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	heir := site.join("heir", cluster.Config{})
	leaver := site.join("leaver", cluster.Config{Shutdown: cluster.ShutdownConfig{HandOverTo: heir.ID()}})
	leads(t, leaver.campaign("r"))
	other := site.join("other", cluster.Config{}).campaign("r")
	next := heir.campaign("r")
	if err := leaver.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	leads(t, next)
	if other.IsLeader() {
		t.Error("another node took the role")
	}
}

// A node that only watches does not have the node role scheduler, unless its
// configuration names it, so no drain reserves a role for it.
func TestDrainIgnoresNodeThatOnlyWatches(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	leaver := site.join("leaver", cluster.Config{Shutdown: cluster.ShutdownConfig{HandOver: true}})
	term := leads(t, leaver.campaign("r"))
	watcher := site.join("watcher", cluster.Config{}, func(c *tenure.Config) { c.NoLeader = true })
	leaver.sees(watcher.ID(), "active without the node role", func(info cluster.NodeInfo, there bool) bool {
		return there && info.Status == cluster.Active && !info.HasRole(cluster.Scheduler) && info.HasRole(cluster.Worker)
	})
	if err := leaver.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(term.Context()); errors.Is(cause, tenure.ErrHandedOver) {
		t.Errorf("the term ended with %v, although the only other node does not campaign", cause)
	}
}

// The successor of a drained leader is the node that is preferred most, not the least
// loaded one.
func TestDrainHandsOverToThePreferredNode(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	election := func(n node) *tenure.Election {
		t.Helper()
		e, err := n.Node().ElectionWith(tenure.NamedRole("r"), tenure.ElectionConfig{
			Requires: map[string]string{"disk": "ssd"}, Prefers: map[string]string{"zone": "a"},
		})
		if err == nil {
			err = e.Start(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	described := func(zone, disk, priority string) cluster.Config {
		return cluster.Config{
			Labels:   map[string]string{"zone": zone, "disk": disk, "tenure.priority": priority},
			Shutdown: cluster.ShutdownConfig{HandOver: true},
		}
	}
	loaded := func(c *tenure.Config) {
		c.Load = func() tenure.Load { return tenure.Load{CPU: 90, Memory: 90} }
	}
	leaver := site.join("leaver", described("b", "ssd", "0"))
	term := leads(t, election(leaver))
	site.join("without disk", described("a", "hdd", "9"))
	other := election(site.join("other", described("b", "ssd", "0")))
	preferred := site.join("preferred", described("a", "ssd", "0"), loaded)
	next := election(preferred)
	leaver.seesLoad(preferred.ID(), "there with its load", func(info cluster.NodeInfo, there bool) bool { return there && info.Load() > 0 })
	if err := leaver.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	leads(t, next)
	if cause := context.Cause(term.Context()); other.IsLeader() || !errors.Is(cause, tenure.ErrHandedOver) {
		t.Errorf("the other node leads: %v; the term ended with %v", other.IsLeader(), cause)
	}
}
