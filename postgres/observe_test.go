package postgres

import (
	"context"
	"testing"

	"github.com/exactly-one/tenure"
)

// An observer learns that the leader publishes another address or other labels, with a
// node or without one.
func TestObserveReportsWhatLeaderPublishes(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	role := tenure.NamedRole("primary")
	leading := func(name string) *tenure.Node {
		node, err := tenure.Open(ctx, b, tenure.Config{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close(context.Background()) })
		return node
	}
	leader, observer := leading("leader"), leading("observer")
	election, err := leader.Election(role)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(ctx); err != nil {
		t.Fatal(err)
	}
	term, err := election.WaitForLeadership(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, observe := range map[string]func() <-chan tenure.LeaderChange{
		"of a node":      func() <-chan tenure.LeaderChange { return observer.Observe(ctx, role) },
		"without a node": func() <-chan tenure.LeaderChange { return tenure.Observe(ctx, b, tenure.Config{}, role) },
	} {
		changes := observe()
		if change := <-changes; change.Leader == nil || change.Leader.Term != term.Number() {
			t.Fatalf("%s: got %+v, want that the term %d is led", name, change, term.Number())
		}
		if err := leader.UpdateDescription(ctx, func(d *tenure.Description) {
			d.Address, d.Labels = "192.0.2.9", map[string]string{"observer": name}
		}); err != nil {
			t.Fatal(err)
		}
		change := <-changes
		if change.Leader == nil || change.Previous == nil {
			t.Fatalf("%s: got %+v, want a change of the same leader", name, change)
		}
		if change.Previous.Term != term.Number() || change.Leader.Term != term.Number() {
			t.Errorf("%s: the terms are %d and %d, want %d", name, change.Previous.Term, change.Leader.Term, term.Number())
		}
		if change.Leader.Address != "192.0.2.9" || change.Leader.Labels["observer"] != name {
			t.Errorf("%s: the leader publishes %q and %v, want the new address and labels", name, change.Leader.Address, change.Leader.Labels)
		}
	}
}
