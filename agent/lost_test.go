//go:build linux

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// losing makes a session of the agent end at its next heartbeat, while its connection
// and its locks last, as the session of a node does that was marked as dead.
func losing(db *hookedDatabase) (lose func()) {
	var lost atomic.Bool
	db.heartbeat = func(tenure.Load) error {
		if lost.CompareAndSwap(true, false) {
			return fmt.Errorf("%w: the node was marked as dead", tenure.ErrSessionLost)
		}
		return nil
	}
	return func() { lost.Store(true) }
}

// The locks of a lost session last until the work of its nodes has returned.
func TestLostSessionKeepsItsLocksWhileNodesWork(t *testing.T) {
	t.Parallel()
	db := newHooked()
	lose := losing(db)
	other := otherHost(t, db)
	timing := tenure.Timing{Lease: 2 * soon, RefreshInterval: 20 * time.Millisecond, Margin: time.Second}
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: timing}), time.Minute)
	node.acquire("r")
	lose()
	if !node.hears(wire.EventLost) {
		t.Fatal("invariant 1: a node does not notice that the agent's session is lost")
	}
	if grantedWithin(t, other, "r", 100*time.Millisecond) {
		t.Error("invariant 4: another host has the role while the work of the old leader runs")
	}
	node.close() // its work has returned
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 7: the role is not released when the work of the old leader has returned")
	}
}

// A node whose work does not return holds the locks of a lost session until its trust
// has ended, and no longer.
func TestLostSessionFreesItsLocksAfterTrust(t *testing.T) {
	t.Parallel()
	db := newHooked()
	lose := losing(db)
	other := otherHost(t, db)
	timing := tenure.Timing{Lease: 2 * time.Second, RefreshInterval: 20 * time.Millisecond, Margin: 200 * time.Millisecond}
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: timing}), time.Minute)
	node.acquire("r")
	until := node.beat().Until
	lose()
	if !grantedWithin(t, other, "r", soon) {
		t.Error("invariant 7: a node whose work does not return keeps the role for ever")
	} else if left := until.Sub(wire.Now()); left > 0 {
		t.Errorf("invariant 1: another host has the role %v before the trust of the old leader ends", left)
	}
}

// The engine of a node aborts a session whose connection has ended. The connection to
// the agent has not, and the locks must last while the work runs.
func TestNodeKeepsItsConnectionWhileItsWorkRuns(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	session, err := agent.New(startAgent(t, server.Config{Backend: db})).Open(t.Context(), options("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Abort()
	awaitGranted(t, session, "r")
	db.Revoke(tenure.NamedRole("r"))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for err == nil && ctx.Err() == nil {
		_, err = session.Wait(ctx)
	}
	if !errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("invariant 1: the session of the agent is lost: got error %v, want ErrSessionLost", err)
	}
	if errors.Is(err, tenure.ErrConnection) {
		t.Errorf("invariant 4: the engine would abort before its work has returned: %v", err)
	}
}

// runAgent runs an agent that stop asks to end.
func runAgent(t *testing.T, cfg server.Config) (path string, stop func(), ended <-chan error) {
	t.Helper()
	cfg.Path, cfg.Logger = socketPath(t), slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- server.Run(ctx, cfg, func() { close(ready) }) }() // exits after stop; done shows it
	t.Cleanup(cancel)
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("the agent has ended: %v", err)
	}
	return cfg.Path, cancel, done
}

// An agent that ends keeps the roles of its nodes while their work runs, for one lease
// at most.
func TestLeavingAgentWaitsForTheWorkOfItsNodes(t *testing.T) {
	t.Parallel()
	t.Run("until it returns", func(t *testing.T) {
		t.Parallel()
		db := tenuretest.NewDatabase()
		other := otherHost(t, db)
		path, stop, ended := runAgent(t, server.Config{Backend: db, Timing: rareBeats})
		node := join(t, path, time.Minute)
		node.acquire("r")
		stop()
		if !node.hears(wire.EventLost) {
			t.Fatal("a node does not notice that its agent ends")
		}
		if grantedWithin(t, other, "r", 100*time.Millisecond) {
			t.Error("invariant 4: another host has the role while the work of the old leader runs")
		}
		node.close()
		awaitEnded(t, ended, soon, "the agent does not end, although no node can trust a term")
	})
	t.Run("for one lease", func(t *testing.T) {
		t.Parallel()
		timing := tenure.Timing{Lease: time.Second, RefreshInterval: 100 * time.Millisecond, Margin: 100 * time.Millisecond}
		path, stop, ended := runAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: timing})
		join(t, path, time.Minute).acquire("r")
		stop()
		awaitEnded(t, ended, soon, "the agent does not end, although no node can trust a term")
	})
}

// An agent that ends while its session is lost, or loses it while it ends, keeps the locks
// for a node that is stopped: it has not heard of that, and still trusts its term.
func TestEndingAgentKeepsLocksWhileNodesTrust(t *testing.T) {
	t.Parallel()
	for name, inOrder := range map[string]func(stop, lose func(), node rawNode){
		"lost, then ended": func(stop, lose func(), node rawNode) {
			lose()
			node.hears(wire.EventLost)
			stop()
		},
		"ended, then lost": func(stop, lose func(), node rawNode) {
			stop()
			node.hears(wire.EventLost)
			lose()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newHooked()
			lose := losing(db)
			other := otherHost(t, db)
			timing := tenure.Timing{Lease: 2 * time.Second, RefreshInterval: 20 * time.Millisecond, Margin: 200 * time.Millisecond}
			path, stop, ended := runAgent(t, server.Config{Backend: db, Timing: timing})
			node := join(t, path, time.Minute)
			node.acquire("r")
			until := node.beat().Until
			inOrder(stop, lose, node)
			if !grantedWithin(t, other, "r", soon) {
				t.Error("invariant 7: a node whose work does not return keeps the role for ever")
			} else if left := until.Sub(wire.Now()); left > 0 {
				t.Errorf("invariant 1: another host has the role %v before the trust of the old leader ends", left)
			}
			awaitEnded(t, ended, soon, "the agent does not end, although no node can trust a term")
		})
	}
}

func awaitEnded(t *testing.T, ended <-chan error, limit time.Duration, otherwise string) {
	t.Helper()
	if err := testkit.Receive(t, ended, limit, otherwise); err != nil {
		t.Error(err)
	}
}

// A node that closes its session closes the connection too: an agent that ends does not
// wait for it.
func TestClosedSessionHoldsUpNoAgent(t *testing.T) {
	t.Parallel()
	path, stop, ended := runAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: rareBeats})
	session, err := agent.New(path).Open(t.Context(), options("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	stop()
	awaitEnded(t, ended, soon, "the agent does not end, although no node can trust a term")
}

// A refusal ends an agent only at its start. Later, as during a migration, it tries again.
func TestAgentOutlivesRefusalOfLaterSession(t *testing.T) {
	t.Parallel()
	db := newHooked()
	var refused atomic.Bool
	again := make(chan struct{}, 100)
	db.open = func() error {
		if refused.Load() {
			again <- struct{}{}
			return fmt.Errorf("%w: the schema is newer", tenure.ErrRefused)
		}
		return nil
	}
	path := startAgent(t, server.Config{Backend: db})
	node := join(t, path, time.Minute)
	node.acquire("r")
	refused.Store(true)
	db.Revoke(tenure.NamedRole("r"))
	for range 2 {
		testkit.Receive(t, again, soon, "invariant 7: after a refusal the agent opens no other session")
	}
	refused.Store(false)
	join(t, path, time.Minute).acquire("r")
}
