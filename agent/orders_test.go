//go:build linux

package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/tenuretest"
)

// A request is for the term in which it was made.
func TestRequestEndsWithItsTerm(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: rareBeats})
	leader := join(t, path, time.Minute)
	first := leader.try("r").Term
	stepDown := tenure.Request{Kind: tenure.RequestStepDown, Role: "r", Term: first}
	leader.beat() // after this, one event may come
	if err := agent.New(path).Request(t.Context(), stepDown); err != nil {
		t.Fatal(err)
	}
	if !leader.hears(wire.EventWake) {
		t.Error("a leader is not woken by a request")
	}
	if err := leader.release("r", first, uuid.Nil, 0); err != nil {
		t.Fatal(err)
	}
	second := leader.try("r").Term
	if answer := leader.call(wire.Call{Op: wire.OpRequests}); len(answer.Requests) > 0 {
		t.Errorf("term %d gets the requests %+v, which were for term %d", second, answer.Requests, first)
	}
	if err := agent.New(path).Request(t.Context(), stepDown); !errors.Is(err, tenure.ErrNoLeader) {
		t.Errorf("a request for a term that has ended: got error %v, want ErrNoLeader", err)
	}
	if answer := leader.call(wire.Call{Op: wire.OpRequests}); len(answer.Requests) > 0 {
		t.Errorf("term %d gets a request for a term that has ended: %+v", second, answer.Requests)
	}
	stepDown.Term = second
	if err := agent.New(path).Request(t.Context(), stepDown); err != nil {
		t.Fatal(err)
	}
	if !leader.beat().Pending {
		t.Error("the answer to a heartbeat hides that a request waits")
	}
	if answer := leader.call(wire.Call{Op: wire.OpRequests}); len(answer.Requests) != 1 {
		t.Errorf("the leader gets the requests %+v, want one", answer.Requests)
	}
}

// The database knows the nodes of a host as their agent: a leader on another host hands
// a role over to that.
func TestRoleOfAnotherHostIsHandedOverToTheAgent(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	path, id := startAgent(t, server.Config{Backend: db}), uuid.New()
	node, _ := joinAs(t, path, id, time.Minute)
	node.acquire("of the agent")
	leaders, err := db.Leaders(t.Context(), "of the agent")
	if err != nil || len(leaders) != 1 {
		t.Fatalf("got the leaders %+v, error %v; want one", leaders, err)
	}
	awaitGranted(t, other, "r")
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: "r", Target: id}
	if err := agent.New(path).Request(t.Context(), request); err != nil {
		t.Fatalf("a hand-over from another host to a node of the agent: %v", err)
	}
	requests, err := other.Requests()
	if err != nil || len(requests) != 1 || requests[0].Target != leaders[0].NodeID {
		t.Errorf("the leader on the other host gets the requests %+v, error %v; want one for node %s", requests, err, leaders[0].NodeID)
	}
}
