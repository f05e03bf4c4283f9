package postgres

import (
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// A session of an agent takes roles for several nodes in one call. Each term has the name
// of its node, in the history too, and the leader has the name of the agent.
func TestTermHasTheNameOfTheNodeBehindAnAgent(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	host := open(t, b, func(o *peerOptions) { o.name = "host-1" })
	requests := []tenure.AcquireRequest{
		{Role: tenure.NamedRole("a"), NodeName: "n1"}, {Role: tenure.NamedRole("b"), NodeName: "n2"}, {Role: tenure.NamedRole("c")},
	}
	results, err := host.TryAcquire(requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Outcome != tenure.OutcomeGranted {
			t.Fatalf("%s: %+v; want a term", requests[i].Role, r)
		}
	}
	leaders, err := b.Leaders(t.Context())
	if err != nil || len(leaders) != 3 {
		t.Fatalf("%d leaders, %v; want 3", len(leaders), err)
	}
	for i, want := range []tenure.Leader{{NodeName: "n1", Agent: "host-1"}, {NodeName: "n2", Agent: "host-1"}, {NodeName: "host-1"}} {
		if got := leaders[i]; got.NodeName != want.NodeName || got.Agent != want.Agent {
			t.Errorf("%s is led by %q behind %q; want %q behind %q", got.Role, got.NodeName, got.Agent, want.NodeName, want.Agent)
		}
	}
	release := tenure.ReleaseRequest{Role: requests[0].Role, Term: results[0].Term, Reason: history.EndCrashed}
	if err := host.Release([]tenure.ReleaseRequest{release}); err != nil {
		t.Fatal(err)
	}
	next := open(t, b, func(o *peerOptions) { o.name = "n4" })
	if results, err = next.TryAcquire(requests[:1:1]); err != nil || results[0].Outcome != tenure.OutcomeGranted {
		t.Fatalf("%+v, %v; want a term", results, err)
	}
	terms, err := b.History(t.Context(), history.Query{Role: "a", Limit: 10})
	if err != nil || len(terms) != 2 || terms[1].NodeName != "n1" {
		t.Errorf("the history of a is %+v, %v; want a term of n1", terms, err)
	}
}
