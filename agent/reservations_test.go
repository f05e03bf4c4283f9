//go:build linux

package agent_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// handedOver is a role that a node of a host handed over to another node of the host.
type handedOver struct {
	from, target, third rawNode
	other               tenure.Session // on another host
}

func handOver(t *testing.T, reservation time.Duration) handedOver {
	t.Helper()
	db := tenuretest.NewDatabase()
	path, id := startAgent(t, server.Config{Backend: db}), uuid.New()
	h := handedOver{other: otherHost(t, db)}
	h.from, h.third = join(t, path, time.Minute), join(t, path, time.Minute)
	h.target, _ = joinAs(t, path, id, time.Minute)
	h.from.acquire("r")
	if err := h.from.release("r", 0, id, reservation); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRoleIsHandedOverWithinTheHost(t *testing.T) {
	t.Parallel()
	h := handOver(t, time.Hour)
	if got := h.third.try("r"); got.Outcome != tenure.OutcomeHeld || got.RetryIn <= 0 {
		t.Errorf("a node that is not the target of a hand-over: got %+v, want OutcomeHeld with a hint", got)
	}
	if got := tryOnce(t, h.other, "r"); got.Outcome != tenure.OutcomeHeld {
		t.Errorf("another host during a hand-over: got %+v, want OutcomeHeld", got)
	}
	got := h.target.try("r")
	if got.Outcome != tenure.OutcomeGranted {
		t.Fatalf("the target of a hand-over: got %+v, want OutcomeGranted", got)
	}
	if err := h.target.release("r", got.Term, uuid.Nil, 0); err != nil {
		t.Fatal(err)
	}
	// The reservation applies to one term.
	if got := h.third.try("r"); got.Outcome != tenure.OutcomeGranted {
		t.Errorf("a role after the term that it was reserved for: got %+v, want OutcomeGranted", got)
	}
}

// A node that does not take a role in time, or that dies, keeps it from no other node.
func TestReservationEndsWithItsTimeOrItsNode(t *testing.T) {
	t.Parallel()
	t.Run("with its time", func(t *testing.T) {
		t.Parallel()
		h := handOver(t, 100*time.Millisecond)
		if !rawGrantedWithin(h.third, "r", soon) {
			t.Error("invariant 7: a reservation that has expired keeps the role from the other nodes of the host")
		}
	})
	t.Run("with its node", func(t *testing.T) {
		t.Parallel()
		h := handOver(t, time.Hour)
		h.target.close()
		if !rawGrantedWithin(h.third, "r", soon) {
			t.Error("invariant 7: the reservation for a node that died keeps the role from the other nodes of the host")
		}
	})
}

// rawGrantedWithin is grantedWithin for a node that speaks the protocol by hand.
func rawGrantedWithin(node rawNode, role string, most time.Duration) bool {
	node.Helper()
	return testkit.Within(most, func() bool { return node.try(role).Outcome == tenure.OutcomeGranted })
}
