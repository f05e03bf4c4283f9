//go:build linux

package agent_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestReleaseWakesTheOtherNodes(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: rareBeats})
	leader, standby := join(t, path, time.Minute), join(t, path, time.Minute)
	leader.acquire("r")
	standby.beat() // after this, one event may come
	if err := leader.release("r", 0, uuid.Nil, 0); err != nil {
		t.Fatal(err)
	}
	if !standby.hears(wire.EventWake) {
		t.Error("invariant 7: a standby is not woken when the leader on its host releases the role")
	}
}

// What the agent knows about a role of another host ends with a notification, or after
// half of the check interval: notifications can be lost.
func TestRoleThatAnotherHostReleasedIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaf  bool
		check time.Duration
	}{
		"after a notification":          {false, time.Hour},
		"after a notification was lost": {true, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newHooked()
			db.deaf = c.deaf
			other := otherHost(t, db)
			timing := rareBeats
			timing.CheckInterval = c.check
			node := join(t, startAgent(t, server.Config{Backend: db, Timing: timing}), time.Minute)
			awaitGranted(t, other, "r")
			// Misses right after a change of roles count for a millisecond.
			for began := time.Now(); time.Since(began) < time.Second; time.Sleep(10 * time.Millisecond) {
				if got := node.try("r"); got.Outcome != tenure.OutcomeHeld {
					t.Fatalf("invariant 1: the role of another host: got %+v, want OutcomeHeld", got)
				}
			}
			if err := other.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("r"), Reason: "resigned"}}); err != nil {
				t.Fatal(err)
			}
			if !rawGrantedWithin(node, "r", soon) {
				t.Error("invariant 7: the agent answers that another host leads, long after that has released the role")
			}
		})
	}
}
