//go:build linux

package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/tenuretest"
)

// shortLease is long enough for a node to acquire a role on a busy machine.
const shortLease = time.Second

// A call that arrives after the lease of its node, while the database holds the agent
// up, does not renew the lease: the release of the node's roles is only late.
func TestLateCallDoesNotReviveLease(t *testing.T) {
	t.Parallel()
	db := newHooked()
	slow := newStall(t, db)
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: quickBeats}), shortLease)
	end := slow.begin()
	defer end()
	time.Sleep(shortLease) // the node is stopped for longer than its lease
	if answer := node.beat(); !errors.Is(answer.Err.Decode(), tenure.ErrSessionLost) {
		t.Errorf("invariant 1: a heartbeat after the lease of the node: got %+v, want ErrSessionLost", answer)
	}
}

func TestNodeThatCallsKeepsItsSession(t *testing.T) {
	t.Parallel()
	node := join(t, startAgent(t, server.Config{Backend: tenuretest.NewDatabase()}), shortLease)
	for began := time.Now(); time.Since(began) < shortLease*3/2; time.Sleep(time.Millisecond) {
		if err := node.beat().Err.Decode(); err != nil {
			t.Fatalf("a node that calls all the time loses its session after %v: %v", time.Since(began), err)
		}
	}
}

// The role of a silent node is free for other hosts after the lease of the node, although
// nothing else wakes the agent, and not before.
func TestRoleOfSilentNodeIsReleasedAfterItsLease(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	silent := join(t, startAgent(t, server.Config{Backend: db, Timing: rareBeats}), shortLease)
	sent := time.Now()
	silent.acquire("r")
	granted := grantedWithin(t, other, "r", soon)
	if took := time.Since(sent); !granted {
		t.Errorf("the role of a silent node is not released %v after its last call", took)
	} else if took < shortLease {
		t.Errorf("invariant 1: another host has the role %v after a call, within the lease of %v", took, shortLease)
	}
}

// While the agent waits for the database, a node waits for a role for longer than its
// lease. It does not get the role: nothing would release it.
func TestNodeWhoseLeaseExpiresGetsNoRole(t *testing.T) {
	t.Parallel()
	db := newHooked()
	slow := newStall(t, db)
	other := otherHost(t, db)
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: quickBeats}), shortLease)
	end := slow.begin()
	node.send(acquireCall("r"))
	time.Sleep(shortLease) // the database is slow
	end()
	if !node.loses() {
		t.Error("invariant 7: a call that waited for longer than the lease is answered, want ErrSessionLost")
	}
	node.close()
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 7: the role is held for a node whose lease has expired")
	}
}

// An older session of a node is refused and keeps its role until it ends.
func TestOlderSessionOfNodeIsSuperseded(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	path, id := startAgent(t, server.Config{Backend: db}), uuid.New()
	older, _ := joinAs(t, path, id, time.Minute)
	older.acquire("r")
	newer, _ := joinAs(t, path, id, time.Minute)
	if err := older.beat().Err.Decode(); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("a heartbeat of the older session of a node: got error %v, want ErrSuperseded", err)
	}
	if got := newer.try("r"); got.Outcome != tenure.OutcomeHeld {
		t.Errorf("invariant 1: the newer session gets the role of the older one: %+v", got)
	}
	older.close()
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 7: the role of the older session is not released when it has ended")
	}
}

// The end of an older session leaves the newer one of the same node unchanged.
func TestNewerSessionOutlivesTheOlderOne(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	other := otherHost(t, db)
	path, id := startAgent(t, server.Config{Backend: db, Timing: rareBeats}), uuid.New()
	older, _ := joinAs(t, path, id, time.Minute)
	older.acquire("of the older one")
	newer, _ := joinAs(t, path, id, time.Minute)
	leader := join(t, path, time.Minute)
	leader.acquire("r")
	older.close()
	if !grantedWithin(t, other, "of the older one", soon) {
		t.Fatal("the agent does not notice the end of the older session")
	}
	newer.beat() // after this, one event may come
	if err := leader.release("r", 0, uuid.Nil, 0); err != nil {
		t.Fatal(err)
	}
	if !newer.hears(wire.EventWake) {
		t.Error("invariant 7: the newer session of a node is not woken when a role is vacant, since its older one has ended")
	}
}

// A session of a node is newer than all earlier ones, also after the agent has opened
// another session with the database.
func TestIncarnationsIncreaseAcrossSessionsOfTheAgent(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	path, id := startAgent(t, server.Config{Backend: db}), uuid.New()
	joinAs(t, path, id, time.Minute)
	node, last := joinAs(t, path, id, time.Minute)
	node.acquire("r")
	db.Revoke(tenure.NamedRole("r"))
	if !node.hears(wire.EventLost) {
		t.Fatal("invariant 1: a node does not notice that the agent's session is lost")
	}
	if _, next := joinAs(t, path, id, time.Minute); next <= last {
		t.Errorf("a later session has the incarnation %d, want more than %d", next, last)
	}
}
