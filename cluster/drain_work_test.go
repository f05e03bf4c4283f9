package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// seesWork waits until the node sees how much work is in flight on a draining node.
func (n node) seesWork(id cluster.NodeID, inFlight int) {
	n.t.Helper()
	n.seesLoad(id, "draining with its work", func(info cluster.NodeInfo, there bool) bool {
		return there && info.Status == cluster.Draining && info.InFlight == inFlight
	})
}

// state reads the registry: whether a node is drained, and its work in flight.
func (s site) state(id cluster.NodeID) (drained bool, inFlight int) {
	s.t.Helper()
	members, err := s.store().Members(s.t.Context())
	i := slices.IndexFunc(members, func(m tenure.Member) bool { return m.ID == id })
	if err != nil || i < 0 {
		s.t.Fatalf("member %d of %d: %v", i, len(members), err)
	}
	return members[i].Drained, members[i].InFlight
}

// Work that outlasts the drain timeout loses its roles and keeps the node draining. The
// node is drained when the work ends, without another request.
func TestDrainOutlastsItsTimeoutWhileWorkRuns(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", patientDrain(50*time.Millisecond))
	e := b.campaign("r")
	leads(t, e)
	end := b.works()
	if err := b.Drain(within(t)); !errors.Is(err, tenure.ErrWorkRunning) {
		t.Errorf("Drain: %v; want ErrWorkRunning", err)
	}
	if e.IsLeader() {
		t.Error("the role was kept")
	}
	a.seesWork(b.ID(), 1)
	if drained, inFlight := site.state(b.ID()); drained || inFlight != 1 {
		t.Errorf("the registry has drained %v with %d units of work in flight; want draining with 1", drained, inFlight)
	}
	end()
	a.seesDrained(b.ID())
	if drained, inFlight := site.state(b.ID()); !drained || inFlight != 0 {
		t.Errorf("the registry has drained %v with %d units of work in flight; want drained with 0", drained, inFlight)
	}
	if err := b.Drain(within(t)); err != nil {
		t.Errorf("draining again without work: %v", err)
	}
}

// A drained node publishes no work, also if its work has just ended.
func TestDrainedNodeShowsNoWork(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	end := b.works()
	drained := start(func() error { return b.Drain(within(t)) })
	a.seesWork(b.ID(), 1)
	end()
	if err := result(t, drained); err != nil {
		t.Fatal(err)
	}
	if drained, inFlight := site.state(b.ID()); !drained || inFlight != 0 {
		t.Errorf("the registry has drained %v with %d units of work in flight; want drained with 0", drained, inFlight)
	}
}

// The caller of another process waits for the work, not for the node's drain timeout.
func TestDrainNodeWaitsForWork(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", patientDrain(50*time.Millisecond))
	e := b.campaign("r")
	leads(t, e)
	end := b.works()
	ctx, cancel := context.WithCancelCause(within(t))
	late := errors.New("too late")
	options := cluster.DrainOptions{Progress: func(p cluster.DrainProgress) {
		if p.Status == cluster.Draining && p.Leads == 0 && p.InFlight == 1 {
			cancel(late)
		}
	}}
	err := site.drainNode(ctx, b.ID(), options)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), "1 units of work in flight") {
		t.Errorf("DrainNode: %v; want the cause, and the work that is left", err)
	}
	drained := start(func() error { return site.drainNode(within(t), b.ID(), cluster.DrainOptions{}) })
	a.seesWork(b.ID(), 1)
	end()
	if err := result(t, drained); err != nil {
		t.Errorf("DrainNode: %v", err)
	}
}

// A node that is undrained after the drain timeout is not drained when its work ends.
func TestUndrainAfterDrainTimeoutIsFinal(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", patientDrain(time.Millisecond))
	end := b.works()
	if err := b.Drain(within(t)); !errors.Is(err, tenure.ErrWorkRunning) {
		t.Fatalf("Drain: %v; want ErrWorkRunning", err)
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	end()
	a.seesStatus(b.ID(), cluster.Active)
	guard, ok := b.InFlight().Enter()
	if !ok {
		t.Error("the node refuses work after it was undrained")
	}
	guard.Done()
	if drained, _ := site.state(b.ID()); drained || !b.AcceptsWork() {
		t.Errorf("drained %v, accepts work %v; want an active node", drained, b.AcceptsWork())
	}
}
