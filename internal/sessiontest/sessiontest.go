// Package sessiontest checks that an implementation of tenure.Backend keeps the
// contract of the seam, whatever database stands behind it. Each test runs
// equally in real time and inside a synctest bubble: it waits for conditions,
// with deadlines, and never for time alone to pass.
package sessiontest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// patience is how long the suite waits for something that should happen.
const patience = 30 * time.Second

// Run runs the suite, each test in parallel with the others, on a backend of its
// own: one that no other test's roles or nodes can be seen in. The tests of
// features run for the backends that have them.
func Run(t *testing.T, newBackend func(t *testing.T) tenure.Backend, features ...Feature) {
	RunIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, newBackend, features...)
}

// RunIn is Run with every test inside a bubble, such as synctest.Test.
func RunIn(t *testing.T, bubble func(*testing.T, func(*testing.T)), newBackend func(t *testing.T) tenure.Backend, features ...Feature) {
	var has Feature
	for _, feature := range features {
		has |= feature
	}
	for _, test := range slices.Concat(tests, registryTests) {
		if test.needs&^has != 0 {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { test.run(&suite{T: t, backend: newBackend(t), features: has}) })
		})
	}
}

type test struct {
	name  string
	run   func(*suite)
	needs Feature
}

var tests = []test{
	{"the features are those that were named", featured, 0},
	{"one session at a time holds a role", exclusion, 0},
	{"attempts come in the order of the candidates", order, 0},
	{"many roles in one call", batch, 0},
	{"keys by name, number and pair do not meet", keys, 0},
	{"another key for a name is refused", keyMismatch, 0},
	{"terms grow", termsGrow, 0},
	{"incarnations grow", incarnationsGrow, 0},
	{"a recovering candidate learns who holds the role", recovering, 0},
	{"the time of vacancy is told", vacancy, 0},
	{"the context of Open bounds the opening only", openContext, 0},

	{"waiting goes on without locking again", waiting, 0},
	{"a waiting role can be given up", waitingReleased, 0},
	{"a reservation favors its node", reservation, 0},
	{"a reservation lapses", reservationLapses, 0},

	{"release wakes and frees", releaseWakes, 0},
	{"a lost session wakes and frees", abortWakes, 0},
	{"close leaves the cluster", closeLeaves, 0},
	{"wait ends with its context", waitContext, 0},
	{"abort ends a wait", abortUnblocks, 0},

	{"heartbeats keep the lease", heartbeatKeeps, 0},
	{"silence ends the lease, not before its time", silenceEnds, 0},
	{"nothing is sent when trust has ended", maySend, 0},
	{"a new session supersedes the old one", superseded, 0},

	{"leaders are listed", leaders, 0},
	{"a request reaches the leader, once", requests, 0},
	{"a request needs a leader and a living target", requestsRefused, 0},
}

// suite is one test with its backend.
type suite struct {
	*testing.T
	backend  tenure.Backend
	features Feature
}

func (s *suite) has(f Feature) bool { return s.features&f == f }

// timing is for tests in which nothing expires. A backend bounds its calls by the
// refresh interval, so a busy machine needs a long one.
func timing() tenure.Timing {
	return tenure.Timing{
		Lease: 3 * time.Minute, RefreshInterval: time.Minute, Margin: 500 * time.Millisecond,
		CheckInterval: 500 * time.Millisecond, LockTimeout: time.Minute, FenceTimeout: time.Second,
	}
}

// mortal is for a session whose lease a test waits for. The lease leaves a busy
// machine time for a few calls, and no call is cut short before its end.
func mortal() tenure.Timing {
	t := timing()
	t.Lease, t.RefreshInterval = 6*time.Second, 6*time.Second
	return t
}

// node is one session of one node.
type node struct {
	tenure.Session
	suite *suite
	id    uuid.UUID
	mute  atomic.Bool // trust has ended: MaySend is false
	heard atomic.Bool // NodesChanged was called
}

// open opens a session for a new node. It is aborted when the test ends, and in
// any case before the test could wait for ever.
func (s *suite) open(name string, timing tenure.Timing) *node {
	s.Helper()
	return s.reopen(uuid.New(), name, timing)
}

func (s *suite) reopen(id uuid.UUID, name string, timing tenure.Timing, changes ...func(*tenure.SessionOptions)) *node {
	s.Helper()
	n, err := s.tryOpen(id, name, timing, changes...)
	if err != nil {
		s.Fatalf("opening a session for %s: %v", name, err)
	}
	if _, err := n.Heartbeat(tenure.Load{}); err != nil {
		s.Fatalf("first heartbeat of %s: %v", name, err)
	}
	return n
}

func (s *suite) tryOpen(id uuid.UUID, name string, timing tenure.Timing, changes ...func(*tenure.SessionOptions)) (*node, error) {
	n := &node{suite: s, id: id}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opening := tenure.SessionOptions{
		Node:        tenure.NodeInfo{ID: id, Name: name, Host: "host-of-" + name},
		Description: tenure.Description{Status: tenure.StatusActive},
		Timing:      timing,
		Clock:       tenure.SystemClock(),
		Logger:      slog.New(slog.DiscardHandler),
		MaySend:     func() bool { return !n.mute.Load() },

		NodesChanged: func() { n.heard.Store(true) },
	}
	for _, change := range changes {
		change(&opening)
	}
	session, err := s.backend.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	n.Session = session
	guard := time.AfterFunc(6*patience, session.Abort)
	s.Cleanup(func() {
		guard.Stop()
		session.Abort()
	})
	return n, nil
}

// try makes one attempt for one role.
func (n *node) try(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	return n.tryAll(role)[0]
}

func (n *node) tryAll(roles ...tenure.Role) []tenure.AcquireResult {
	n.suite.Helper()
	candidates := make([]tenure.AcquireRequest, len(roles))
	for i, role := range roles {
		candidates[i].Role = role
	}
	attempts, err := n.TryAcquire(candidates)
	if err != nil {
		n.suite.Fatalf("TryAcquire: %v", err)
	}
	if len(attempts) != len(roles) {
		n.suite.Fatalf("TryAcquire returned %d attempts for %d candidates", len(attempts), len(roles))
	}
	return attempts
}

// finish makes attempts for roles until none of them is Waiting: a backend may
// leave what one call has no time for to the next.
func (n *node) finish(roles ...tenure.Role) []tenure.AcquireResult {
	n.suite.Helper()
	attempts := n.tryAll(roles...)
	n.suite.eventually("no attempt waits", func() bool {
		var waiting []int
		var again []tenure.Role
		for i, attempt := range attempts {
			if attempt.Outcome == tenure.OutcomePending {
				waiting, again = append(waiting, i), append(again, roles[i])
			}
		}
		if len(again) == 0 {
			return true
		}
		for i, attempt := range n.tryAll(again...) {
			attempts[waiting[i]] = attempt
		}
		return false
	})
	return attempts
}

// lead takes a vacant role, at once.
func (n *node) lead(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	attempt := n.try(role)
	if attempt.Outcome != tenure.OutcomeGranted {
		n.suite.Fatalf("a vacant role: got %+v, want it Granted", attempt)
	}
	return attempt
}

// leadSoon takes a role that becomes vacant soon.
func (n *node) leadSoon(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	var attempt tenure.AcquireResult
	n.suite.eventually("the role is granted", func() bool {
		attempt = n.tryAgain(role)
		return attempt.Outcome == tenure.OutcomeGranted
	})
	return attempt
}

// tryAgain is try for a node that may have been silent meanwhile: not every
// database takes an attempt for a sign of life.
func (n *node) tryAgain(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	if _, err := n.Heartbeat(tenure.Load{}); err != nil {
		n.suite.Fatalf("heartbeat: %v", err)
	}
	return n.try(role)
}

// refused checks that a role is held by another.
func (n *node) refused(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	attempt := n.try(role)
	if attempt.Outcome != tenure.OutcomeHeld {
		n.suite.Fatalf("a role that another holds: got %+v, want it Busy", attempt)
	}
	return attempt
}

// resign releases a role.
func (n *node) resign(role tenure.Role, term int64) {
	n.suite.Helper()
	n.release(tenure.ReleaseRequest{Role: role, Term: term, Reason: tenure.EndResigned})
}

func (n *node) release(releases ...tenure.ReleaseRequest) {
	n.suite.Helper()
	if err := n.Release(releases); err != nil {
		n.suite.Fatalf("Release: %v", err)
	}
}

// quiet takes the news that has come so far.
func (n *node) quiet() {
	n.suite.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		changed, err := n.Wait(ctx)
		cancel()
		if err != nil {
			n.suite.Fatalf("Wait: %v", err)
		}
		if !changed {
			return
		}
	}
}

// woken checks that Wait returns because something may have changed.
func (n *node) woken(by string) {
	n.suite.Helper()
	n.awaken("Wait is woken by "+by, func() bool { return false })
}

// told checks that news of the nodes arrives: in Wait, or by NodesChanged.
func (n *node) told(of string) {
	n.suite.Helper()
	n.awaken("the news of "+of+" arrive", n.heard.Load)
}

func (n *node) awaken(what string, heard func() bool) {
	n.suite.Helper()
	n.suite.eventually(what, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		changed, err := n.Wait(ctx)
		if err != nil {
			n.suite.Fatalf("Wait: %v", err)
		}
		if changed || heard() {
			return true
		}
		if _, err := n.Heartbeat(tenure.Load{}); err != nil { // the news may be that of another's silence
			n.suite.Fatalf("heartbeat: %v", err)
		}
		return false
	})
}

// lost checks that an error says that the session is lost.
func (s *suite) lost(doing string, err error) {
	s.Helper()
	if !errors.Is(err, tenure.ErrSessionLost) {
		s.Errorf("%s: got error %v, want one that matches ErrSessionLost", doing, err)
	}
}

// eventually waits until a condition holds.
func (s *suite) eventually(what string, holds func() bool) {
	s.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			s.Fatalf("not in %v: %s", patience, what)
		}
	}
}
