// Package sessiontest checks that an implementation of tenure.Backend keeps the
// contract of the seam, whatever database stands behind it. Each test runs
// equally in real time and inside a synctest bubble: it waits for conditions,
// with deadlines, and never for time alone to pass.
package sessiontest

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// patience is how long the suite waits for something that should happen.
const patience = 10 * time.Second

// Run runs the suite, each test in parallel with the others, on a backend of its
// own: one that no other test's roles or nodes can be seen in.
func Run(t *testing.T, newBackend func(t *testing.T) tenure.Backend) {
	RunIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, newBackend)
}

// RunIn is Run with every test inside a bubble, such as synctest.Test.
func RunIn(t *testing.T, bubble func(*testing.T, func(*testing.T)), newBackend func(t *testing.T) tenure.Backend) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { test.run(&suite{T: t, backend: newBackend(t)}) })
		})
	}
}

var tests = []struct {
	name string
	run  func(*suite)
}{
	{"one session at a time holds a role", exclusion},
	{"attempts come in the order of the candidates", order},
	{"many roles in one call", batch},
	{"keys by name, number and pair do not meet", keys},
	{"another key for a name is refused", keyMismatch},
	{"terms grow", termsGrow},
	{"incarnations grow", incarnationsGrow},
	{"a recovering candidate learns who holds the role", recovering},
	{"the time of vacancy is told", vacancy},
	{"the context of Open bounds the opening only", openContext},

	{"waiting goes on without locking again", waiting},
	{"a waiting role can be given up", waitingReleased},
	{"a reservation favours its node", reservation},
	{"a reservation lapses", reservationLapses},

	{"release wakes and frees", releaseWakes},
	{"a lost session wakes and frees", abortWakes},
	{"close leaves the cluster", closeLeaves},
	{"wait ends with its context", waitContext},
	{"abort ends a wait", abortUnblocks},

	{"heartbeats keep the lease", heartbeatKeeps},
	{"silence ends the lease, not before its time", silenceEnds},
	{"nothing is sent when trust has ended", maySend},
	{"a new session supersedes the old one", superseded},

	{"leaders are listed", leaders},
	{"a request reaches the leader, once", requests},
	{"a request needs a leader and a living target", requestsRefused},
}

// suite is one test with its backend.
type suite struct {
	*testing.T
	backend tenure.Backend
}

// timing is long enough for a slow machine between two statements.
func timing() tenure.Timing {
	return tenure.Timing{
		Lease: 6 * time.Second, RefreshInterval: 2 * time.Second, Margin: 500 * time.Millisecond,
		CheckInterval: 500 * time.Millisecond, LockTimeout: 2 * time.Second, FenceTimeout: time.Second,
	}
}

// short is a timing whose lease a test can wait for.
func short() tenure.Timing {
	t := timing()
	t.Lease, t.RefreshInterval, t.Margin = 1500*time.Millisecond, 500*time.Millisecond, 150*time.Millisecond
	return t
}

// node is one session of one node.
type node struct {
	tenure.Session
	suite *suite
	id    uuid.UUID
	mute  atomic.Bool // trust has ended: MaySend is false
}

// open opens a session for a new node. It is aborted when the test ends, and in
// any case before the test could wait for ever.
func (s *suite) open(name string, timing tenure.Timing) *node {
	s.Helper()
	return s.reopen(uuid.New(), name, timing)
}

func (s *suite) reopen(id uuid.UUID, name string, timing tenure.Timing) *node {
	s.Helper()
	n := &node{suite: s, id: id}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := s.backend.Open(ctx, tenure.Opening{
		Node:    tenure.NodeInfo{ID: id, Name: name, Host: "host-of-" + name},
		Timing:  timing,
		Clock:   tenure.SystemClock(),
		Logger:  slog.New(slog.DiscardHandler),
		MaySend: func() bool { return !n.mute.Load() },
	})
	if err != nil {
		s.Fatalf("opening a session for %s: %v", name, err)
	}
	n.Session = session
	guard := time.AfterFunc(6*patience, session.Abort)
	s.Cleanup(func() {
		guard.Stop()
		session.Abort()
	})
	if _, err := session.Heartbeat(tenure.Load{}); err != nil {
		s.Fatalf("first heartbeat of %s: %v", name, err)
	}
	return n
}

// try makes one attempt for one role.
func (n *node) try(role tenure.Role) tenure.Attempt {
	n.suite.Helper()
	return n.tryAll(role)[0]
}

func (n *node) tryAll(roles ...tenure.Role) []tenure.Attempt {
	n.suite.Helper()
	candidates := make([]tenure.Candidate, len(roles))
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

// lead takes a vacant role, at once.
func (n *node) lead(role tenure.Role) tenure.Attempt {
	n.suite.Helper()
	attempt := n.try(role)
	if attempt.Outcome != tenure.Granted {
		n.suite.Fatalf("a vacant role: got %+v, want it Granted", attempt)
	}
	return attempt
}

// leadSoon takes a role that becomes vacant soon.
func (n *node) leadSoon(role tenure.Role) tenure.Attempt {
	n.suite.Helper()
	var attempt tenure.Attempt
	n.suite.eventually("the role is granted", func() bool {
		attempt = n.tryAgain(role)
		return attempt.Outcome == tenure.Granted
	})
	return attempt
}

// tryAgain is try for a node that may have been silent meanwhile: not every
// database takes an attempt for a sign of life.
func (n *node) tryAgain(role tenure.Role) tenure.Attempt {
	n.suite.Helper()
	if _, err := n.Heartbeat(tenure.Load{}); err != nil {
		n.suite.Fatalf("heartbeat: %v", err)
	}
	return n.try(role)
}

// refused checks that a role is held by another.
func (n *node) refused(role tenure.Role) tenure.Attempt {
	n.suite.Helper()
	attempt := n.try(role)
	if attempt.Outcome != tenure.Busy {
		n.suite.Fatalf("a role that another holds: got %+v, want it Busy", attempt)
	}
	return attempt
}

// resign releases a role.
func (n *node) resign(role tenure.Role, term int64) {
	n.suite.Helper()
	n.release(tenure.Release{Role: role, Term: term, Reason: tenure.EndResigned})
}

func (n *node) release(releases ...tenure.Release) {
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
	n.suite.eventually("Wait is woken by "+by, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), timing().RefreshInterval)
		defer cancel()
		changed, err := n.Wait(ctx)
		if err != nil {
			n.suite.Fatalf("Wait: %v", err)
		}
		if changed {
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
