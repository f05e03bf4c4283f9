package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/tenuretest"
)

// However drains and undrains by the node and by others coincide with work: when all
// have ended and the last one was an undrain, the node is active, and the registry
// shows that.
func TestConcurrentUndrainLeavesNodeActive(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	join := func(name string) *cluster.Member {
		m, err := cluster.Join(within(t), db, quiet(name), cluster.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	witness, m := join("witness"), join("busy")
	e, err := m.Node().Election(tenure.NamedRole("r"))
	if err == nil {
		err = e.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	acts := []func(ctx context.Context) error{
		m.Drain,
		m.Undrain,
		func(ctx context.Context) error { return cluster.DrainNode(ctx, db, m.ID(), cluster.DrainOptions{}) },
		func(ctx context.Context) error { return cluster.UndrainNode(ctx, db, m.ID(), "") },
		func(context.Context) error {
			guard, _ := m.InFlight().Enter()
			defer guard.Done()
			return m.Node().UpdateDescription(within(t), func(d *tenure.Description) { d.Version += "." })
		},
	}
	var all sync.WaitGroup
	for worker := range uint64(4) {
		all.Go(func() {
			chance := rand.New(rand.NewPCG(1, worker))
			for range 25 {
				ctx, cancel := context.WithCancel(within(t))
				if chance.IntN(3) == 0 {
					cancel() // no caller waits for it
				}
				err := acts[chance.IntN(len(acts))](ctx)
				if err != nil && !errors.Is(err, tenure.ErrShutdown) && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if err := cluster.UndrainNode(within(t), db, m.ID(), "the last word"); err != nil {
		t.Fatal(err)
	}
	// The request may be handled before earlier ones have ended: it is still the last
	// one.
	if err := m.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.WaitForLeadership(within(t)); err != nil {
		t.Error(err)
	}
	for _, leaver := range []*cluster.Member{m, witness} {
		if err := leaver.Shutdown(within(t)); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}
}
