//go:build linux

package agent_test

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/testkit"
)

// The lease is short, so that tests which wait for its end are fast, and long
// enough that a loaded machine does not end it by accident.
const (
	faultLease = 5 * time.Second
	slack      = 2 * time.Second // what a loaded machine may add to a bound
)

// hosts are two hosts: the agent of the first one is connected through a proxy and
// has the leader.
type hosts struct {
	*site
	wire        *faultwire.Proxy
	paths       [2]string
	agents      [2]*children.Child
	here, there []*children.Child
	leader      *children.Child
}

func newHosts(t *testing.T) *hosts {
	t.Parallel()
	h := &hosts{site: newSite(t, faultLease), paths: [2]string{socketPath(t), socketPath(t)}}
	dsn := h.server.DSN()
	var err error
	if h.wire, err = faultwire.Start(net.JoinHostPort(h.server.Host, strconv.Itoa(h.server.Port))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.wire.Close(); err != nil {
			t.Error(err)
		}
	})
	through, err := h.wire.DSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	h.agents[0] = h.agent("agent-0", through, h.paths[0])
	h.agents[1] = h.agent("agent-1", dsn, h.paths[1])
	h.here = h.join(h.paths[0], "here-0", "here-1")
	h.leader = h.site.leader(h.here...)
	h.there = h.join(h.paths[1], "there-0", "there-1")
	return h
}

// within checks how long the role took to get its next leader.
func (h *hosts) within(old *children.Child, since time.Time, most time.Duration) *children.Child {
	h.Helper()
	next, took := h.successor(old, since)
	h.Logf("%s follows %s after %v", next.Name, old.Name, took)
	if took > most {
		h.Errorf("%s follows %s after %v, want at most %v", next.Name, old.Name, took, most)
	}
	return next
}

func TestKilledNodeIsReplacedAtOnce(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.leader.Kill()
	h.within(h.leader, since, faultLease/2)
}

func TestStoppedNodeIsReplacedAfterItsLease(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.stop(h.leader)
	h.within(h.leader, since, faultLease+slack)
	h.cont(h.leader)
	children.Await(h, h.leader, "follow", since)
}

func TestKilledAgentEndsTheTermsOfItsNodes(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.agents[0].Kill()
	children.Await(h, h.leader, "follow", since)
	h.within(h.leader, since, faultLease/2)
	h.agents[0] = h.agent("agent-0 again", h.server.DSN(), h.paths[0])
	since = time.Now()
	for _, c := range h.there {
		c.Kill()
	}
	h.within(h.there[0], since, faultLease+slack) // the nodes of the first host are back
}

// The leader cannot notice that its agent was killed while it is stopped. The
// server keeps the lock as long as the leader can trust its term.
func TestKilledAgentOfStoppedNodeKeepsTheRole(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.stop(h.leader)
	h.agents[0].Kill()
	// The last heartbeat was at most a third of a lease ago.
	time.AfterFunc(faultLease/3, func() { h.cont(h.leader) })
	next, took := h.successor(h.leader, since)
	t.Logf("%s follows after %v", next.Name, took)
	if took < faultLease/3-50*time.Millisecond {
		t.Errorf("invariant 1: %s took the role %v after the agent was killed, while the stopped leader could trust its term", next.Name, took)
	}
	children.Await(h, h.leader, "follow", since)
}

func TestStoppedAgentIsReplacedAfterItsLease(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.stop(h.agents[0])
	children.Await(h, h.leader, "follow", since) // its trust ends in time
	next := h.within(h.leader, since, faultLease+slack)
	h.cont(h.agents[0])
	since = time.Now()
	for _, c := range h.there {
		c.Kill()
	}
	h.within(next, since, faultLease+slack) // the nodes of the first host are back
}

func TestCutOffAgentIsReplacedAfterItsLease(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.wire.Stall()
	children.Await(h, h.leader, "follow", since) // its trust ends in time
	h.within(h.leader, since, faultLease+slack)
	h.wire.Resume()
}

// The server frees the locks of a connection that was reset immediately, and the old
// leader may notice later: within its trust window, see the guarantees.
func TestNodesReturnAfterConnectionsWereCut(t *testing.T) {
	h := newHosts(t)
	h.tolerated = faultLease
	h.steps.Excuse()
	since := time.Now()
	for _, conn := range h.wire.Connections() {
		conn.Cut()
	}
	children.Await(h, h.leader, "follow", since)
	h.successor(nil, since)
}

// The agent creates a removed socket again within a second. It looks at intervals, and a
// removal right after one look waits for the whole interval.
func TestRemovedSocketIsMadeAgain(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	for range 3 {
		removed := time.Now()
		if err := os.Remove(h.paths[0]); err != nil {
			t.Fatal(err)
		}
		testkit.AwaitWithin(t, patience, "the socket is back", func() bool { _, err := os.Lstat(h.paths[0]); return err == nil })
		if took := time.Since(removed); took > time.Second {
			t.Fatalf("the socket was back after %v, want at most 1s", took)
		}
	}
	third := h.join(h.paths[0], "here-2")
	if r, found := h.leader.Find("follow", since); found {
		t.Errorf("the leader lost its term: %+v", r)
	}
	for _, c := range append(h.there, h.here...) {
		c.Kill()
	}
	h.site.leader(third...)
}

func TestSecondAgentAtOnePathIsRefused(t *testing.T) {
	h := newHosts(t)
	second := h.start(order{Name: "second agent", DSN: h.server.DSN(), Path: h.paths[0]})
	testkit.Receive(t, second.Ended(), patience, "the second agent does not end")
	if !h.leader.Leading() {
		t.Error("the leader lost its term")
	}
	since := time.Now()
	h.leader.Kill()
	h.within(h.leader, since, faultLease/2)
}

// A stopped agent serves no calls, but what a node holds ends with its socket once
// the agent continues.
func TestKilledNodeOfStoppedAgentIsReplaced(t *testing.T) {
	h := newHosts(t)
	since := time.Now()
	h.stop(h.agents[0])
	h.leader.Kill()
	time.AfterFunc(faultLease/4, func() { h.cont(h.agents[0]) })
	h.within(h.leader, since, faultLease/2+slack)
}
