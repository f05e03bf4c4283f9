//go:build linux

package agent_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestRoleOfDeadNodeIsReleased(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: rareBeats}), time.Minute)
	node.acquire("r")
	node.close()
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 7: the role of a node that died is not released")
	}
}

// Calls of two nodes that wait for the same role are answered together, and one of the
// nodes gets it.
func TestOneOfTheNodesThatWaitGetsTheRole(t *testing.T) {
	t.Parallel()
	db := newHooked()
	slow := newStall(t, db)
	path := startAgent(t, server.Config{Backend: db, Timing: quickBeats})
	a, b := join(t, path, time.Minute), join(t, path, time.Minute)
	for round := range 10 {
		role := fmt.Sprint("r", round)
		end := slow.begin()
		a.send(acquireCall(role))
		b.send(acquireCall(role))
		end()
		granted := 0
		for _, node := range []rawNode{a, b} {
			if results := node.answer().Results; len(results) == 1 && results[0].Outcome == tenure.OutcomeGranted {
				granted++
			}
		}
		if granted != 1 {
			t.Fatalf("invariant 1: %d of two nodes have the role, want 1", granted)
		}
	}
}

// A node can release no role of another node, and no term but its present one.
func TestNodeReleasesOnlyItsPresentTerm(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase()})
	leader, other := join(t, path, time.Minute), join(t, path, time.Minute)
	first := leader.try("r").Term
	if err := other.release("r", 0, uuid.Nil, 0); !errors.Is(err, tenure.ErrLock) {
		t.Errorf("invariant 1: releasing the role of another node: got error %v, want ErrLock", err)
	}
	if got := other.try("r"); got.Outcome != tenure.OutcomeHeld {
		t.Fatalf("invariant 1: the role of another node: got %+v, want OutcomeHeld", got)
	}
	if err := leader.release("r", first, uuid.Nil, 0); err != nil {
		t.Fatal(err)
	}
	if second := leader.try("r").Term; second <= first {
		t.Errorf("invariant 2: term %d follows term %d", second, first)
	}
	if err := leader.release("r", first, uuid.Nil, 0); !errors.Is(err, tenure.ErrLock) {
		t.Errorf("invariant 1: a release of an earlier term ends the present one: got error %v, want ErrLock", err)
	}
}

// A lock that is locked twice would have to be released twice.
func TestHeldRoleIsNotLockedAgain(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	node := join(t, startAgent(t, server.Config{Backend: db}), time.Minute)
	node.acquire("r")
	if got := node.try("r"); got.Outcome != tenure.OutcomeFailed || !errors.Is(got.Err.Decode(), tenure.ErrLock) {
		t.Errorf("invariant 5: acquiring a role that the node holds: got %+v, want ErrLock", got)
	}
	if err := node.release("r", 0, uuid.Nil, 0); err != nil {
		t.Errorf("invariant 5: releasing a role that was acquired once: %v", err)
	}
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 5: the role is still locked")
	}
}

// After a release that failed, the session of the agent may still hold the lock, so the
// session ends, and the role is free.
func TestFailedReleaseEndsTheSessionOfTheAgent(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(rawNode){
		"by a call": func(n rawNode) {
			n.send(releaseCall("r", 0, uuid.Nil, 0))
			if !n.loses() {
				n.Error("invariant 7: a release that failed is acknowledged, want ErrSessionLost")
			}
			n.close() // its work has returned
		},
		"by the end of the node": rawNode.close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newHooked()
			var fails atomic.Bool
			db.release = func() error {
				if fails.CompareAndSwap(true, false) {
					return errBusy
				}
				return nil
			}
			other := otherHost(t, db)
			node := join(t, startAgent(t, server.Config{Backend: db, Timing: rareBeats}), time.Minute)
			node.acquire("r")
			fails.Store(true)
			give(node)
			if !grantedWithin(t, other, "r", soon) {
				t.Error("invariant 7: a role whose release failed stays locked")
			}
		})
	}
}

// Until the first heartbeat after it, a crash of the database may undo the record of a
// term and give its number again.
func TestHeartbeatFollowsTermThatIsNotDurable(t *testing.T) {
	t.Parallel()
	db := newHooked()
	db.acquired = func(results []tenure.AcquireResult) {
		for i := range results {
			results[i].NotDurable = true
		}
	}
	beats := make(chan struct{}, 100)
	db.heartbeat = func(tenure.Load) error {
		beats <- struct{}{}
		return nil
	}
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: rareBeats}), time.Minute)
	<-beats // the first one
	for len(beats) > 0 {
		<-beats
	}
	node.acquire("r")
	testkit.Receive(t, beats, soon, "invariant 2: no heartbeat follows a term that is not durable")
}
