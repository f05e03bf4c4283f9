//go:build linux

package agent_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// soon bounds what takes milliseconds on an idle machine. It is shorter than the times
// after which something else would have the same effect.
const soon = 10 * time.Second

// hookedDatabase is a database whose sessions call the hooks of a test.
type hookedDatabase struct {
	*tenuretest.Database
	heartbeat func(tenure.Load) error      // before each heartbeat; an error is its answer
	acquired  func([]tenure.AcquireResult) // after each attempt; may change the results
	release   func() error                 // before each release; an error is its answer
	open      func() error                 // before each opening; an error is its answer
	deaf      bool                         // sessions report no changes
}

func newHooked() *hookedDatabase {
	return &hookedDatabase{
		Database: tenuretest.NewDatabase(), heartbeat: func(tenure.Load) error { return nil },
		acquired: func([]tenure.AcquireResult) {}, release: func() error { return nil }, open: func() error { return nil },
	}
}

func (d *hookedDatabase) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	inner, err := d.Database.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return &hookedSession{inner, d}, nil
}

type hookedSession struct {
	tenure.Session
	db *hookedDatabase
}

func (s *hookedSession) Heartbeat(load tenure.Load) (bool, error) {
	if err := s.db.heartbeat(load); err != nil {
		return false, err
	}
	return s.Session.Heartbeat(load)
}

func (s *hookedSession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	results, err := s.Session.TryAcquire(requests)
	s.db.acquired(results)
	return results, err
}

func (s *hookedSession) Release(releases []tenure.ReleaseRequest) error {
	if err := s.db.release(); err != nil {
		return err
	}
	return s.Session.Release(releases)
}

func (s *hookedSession) Wait(ctx context.Context) (bool, error) {
	for {
		changed, err := s.Session.Wait(ctx)
		if !changed || !s.db.deaf || err != nil {
			return changed, err
		}
	}
}

// stall holds up one heartbeat at a time, as a slow database does.
type stall struct {
	t      *testing.T
	armed  atomic.Bool
	begun  chan struct{}
	resume chan struct{}
}

func newStall(t *testing.T, db *hookedDatabase) *stall {
	s := &stall{t: t, begun: make(chan struct{}), resume: make(chan struct{})}
	db.heartbeat = func(tenure.Load) error {
		if s.armed.CompareAndSwap(true, false) {
			s.begun <- struct{}{}
			<-s.resume
		}
		return nil
	}
	return s
}

// begin returns when a heartbeat hangs, which end ends.
func (s *stall) begin() (end func()) {
	s.armed.Store(true)
	<-s.begun
	return func() { s.resume <- struct{}{} }
}

// quickBeats are the times of an agent that sends a heartbeat every 10 ms.
var quickBeats = tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Millisecond, Margin: time.Second}

// rareBeats are the times of an agent that does nothing without a cause for 30 s.
var rareBeats = tenure.Timing{Lease: 3 * time.Minute, RefreshInterval: time.Minute, Margin: time.Second, CheckInterval: time.Hour}

// otherHost opens a session with the database that uses no agent.
func otherHost(t *testing.T, db tenure.Backend) tenure.Session {
	t.Helper()
	if hooked, ok := db.(*hookedDatabase); ok {
		db = hooked.Database
	}
	session, err := db.Open(t.Context(), options("on another host"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Abort)
	return session
}

// grantedWithin tries to acquire a role until it is granted or a time has passed.
func grantedWithin(t *testing.T, session tenure.Session, role string, most time.Duration) bool {
	t.Helper()
	return testkit.Within(most, func() bool { return tryOnce(t, session, role).Outcome == tenure.OutcomeGranted })
}

// join connects a node to an agent.
func join(t *testing.T, path string, lease time.Duration) rawNode {
	t.Helper()
	node, _ := joinAs(t, path, uuid.New(), lease)
	return node
}

func joinAs(t *testing.T, path string, id uuid.UUID, lease time.Duration) (node rawNode, incarnation int64) {
	t.Helper()
	node = dialRaw(t, path)
	answer := node.call(wire.Call{Op: wire.OpOpen, Open: &wire.Open{Node: tenure.NodeInfo{ID: id, Name: "raw"}, Lease: lease}})
	if answer.Opened == nil {
		t.Fatalf("opening a session: %+v", answer.Err)
	}
	return node, answer.Opened.Incarnation
}

// send sends a call and returns when the agent has read it.
func (n rawNode) send(call wire.Call) {
	n.Helper()
	call.Version = wire.Version
	if err := wire.Write(n.conn, call); err != nil {
		n.Fatal(err)
	}
	awaitRead(n.T, n.conn)
}

// answer reads the answer to a call that was sent.
func (n rawNode) answer() (answer wire.Answer) {
	n.Helper()
	for {
		answer = wire.Answer{}
		if err := wire.Read(n.conn, &answer); err != nil {
			n.Fatal(err)
		}
		if answer.Event == "" {
			return answer
		}
	}
}

// loses reports whether the next answer or event says that the session of the node is
// lost. The agent sends both, in either order, and then closes its direction.
func (n rawNode) loses() bool {
	n.Helper()
	for {
		var answer wire.Answer
		if err := wire.Read(n.conn, &answer); err != nil {
			n.Fatal(err)
		}
		if answer.Event != wire.EventWake {
			return answer.Event == wire.EventLost || errors.Is(answer.Err.Decode(), tenure.ErrSessionLost)
		}
	}
}

func acquireCall(role string) wire.Call {
	return wire.Call{Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: wire.Role{Name: role}}}}
}

// try makes one attempt to acquire a role.
func (n rawNode) try(role string) wire.Result {
	n.Helper()
	answer := n.call(acquireCall(role))
	if len(answer.Results) != 1 {
		n.Fatalf("acquiring %s: %v", role, answer.Err.Decode())
	}
	return answer.Results[0]
}

func releaseCall(role string, term int64, target uuid.UUID, reservation time.Duration) wire.Call {
	return wire.Call{Op: wire.OpRelease, Releases: []wire.Release{{
		Role: wire.Role{Name: role}, Term: term, Reason: "resigned", Target: target, Reservation: reservation,
	}}}
}

// release releases a role, and reserves it for the target if there is one.
func (n rawNode) release(role string, term int64, target uuid.UUID, reservation time.Duration) error {
	n.Helper()
	return n.call(releaseCall(role, term, target, reservation)).Err.Decode()
}

func (n rawNode) beat() wire.Answer {
	n.Helper()
	return n.call(wire.Call{Op: wire.OpHeartbeat})
}

// hears reports whether an event arrives soon.
func (n rawNode) hears(event string) bool {
	n.Helper()
	if err := n.conn.SetReadDeadline(time.Now().Add(soon)); err != nil {
		n.Fatal(err)
	}
	defer func() { _ = n.conn.SetReadDeadline(time.Time{}) }() // fails if it is closed, as Read does
	for {
		var answer wire.Answer
		err := wire.Read(n.conn, &answer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case err != nil:
			n.Fatal(err)
		case answer.Event == event:
			return true
		}
	}
}

func (n rawNode) close() {
	n.Helper()
	if err := n.conn.Close(); err != nil {
		n.Fatal(err)
	}
}
