// Package sessiontest is the conformance suite for implementations of tenure.Backend on
// any database. Its tests run in real time or inside a synctest bubble. They wait for
// conditions with deadlines, never for a fixed time.
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
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/together"
)

// patience is how long the suite waits for a condition.
const patience = 30 * time.Second

// Run runs the suite. Its tests run in parallel, those that wait for a lease first.
// newBackend is called for each one. It must return a backend on which no roles or nodes
// of other tests are visible. Tests of a feature run if the backend has it.
func Run(t *testing.T, newBackend func(t *testing.T) tenure.Backend, features ...Feature) {
	RunIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, newBackend, features...)
}

// RunIn is Run with every test inside a bubble, for example synctest.Test.
func RunIn(t *testing.T, bubble func(*testing.T, func(*testing.T)), newBackend func(t *testing.T) tenure.Backend, features ...Feature) {
	var has Feature
	for _, feature := range features {
		has |= feature
	}
	run := func(t *testing.T, test test) {
		bubble(t, func(t *testing.T) { test.run(&suite{T: t, backend: newBackend(t), features: has}) })
	}
	waiting := together.New(t)
	for _, test := range waitingTests {
		if test.needs&^has == 0 {
			waiting.Run(test.name, func(t *testing.T) { run(t, test) })
		}
	}
	waiting.Wait()
	for _, test := range slices.Concat(tests, registryTests) {
		if test.needs&^has == 0 {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				run(t, test)
			})
		}
	}
}

type test struct {
	name  string
	run   func(*suite)
	needs Feature
}

var tests = []test{
	{"the features match the declared ones", featured, 0},
	{"one session at a time holds a role", exclusion, 0},
	{"results have the order of the requests", order, 0},
	{"many roles in one call", batch, 0},
	{"keys by name, number and pair differ", keys, 0},
	{"another key for the same name is rejected", keyMismatch, 0},
	{"incarnations increase", incarnationsIncrease, 0},
	{"a recovering candidate gets the holder of the role", recovering, 0},
	{"the result contains the preceding vacancy", vacancy, 0},
	{"the context of Open bounds only Open", openContext, 0},

	{"a reservation favors its node", reservation, 0},
	{"a node that stepped down leaves the role to others", yield, 0},

	{"a release wakes candidates", releaseWakes, 0},
	{"Close removes the node", closeRemoves, 0},
	{"Wait ends with its context", waitContext, 0},
	{"Abort ends Wait", abortUnblocks, 0},

	{"leaders are listed", leaders, 0},
	{"leaders have the names of the nodes behind an agent", leaderNames, LeaderNames},
	{"a request reaches the leader once", requests, 0},
	{"a request for a term spares the next one", requestsOfTerm, 0},
	{"a request needs a leader and a live target", requestsRejected, 0},
	{"a target that does not campaign declines a role", handOverDeclined, Offers},
}

// waitingTests mostly wait for the end of a lease or of a reservation.
var waitingTests = []test{
	{"term numbers increase", termsIncrease, 0},
	{"a pending role is locked once", pending, 0},
	{"a pending role can be released", pendingReleased, 0},
	{"a reservation expires", reservationExpires, 0},
	{"the loss of a session wakes candidates", abortWakes, 0},
	{"heartbeats renew the lease", heartbeatRenews, 0},
	{"the lease of a silent session expires, not earlier", silentExpires, 0},
	{"no statement is sent after trust has ended", maySend, 0},
	{"a new session supersedes the old one", superseded, 0},
	{"a name is free after its node has left or died", uniqueNameFreed, UniqueNames},
}

// suite is a test with its backend.
type suite struct {
	*testing.T
	backend  tenure.Backend
	features Feature
}

func (s *suite) has(f Feature) bool { return s.features&f == f }

// timing is for sessions that do not expire during a test. A backend bounds its calls by
// the refresh interval, which must be long for a busy machine.
func timing() tenure.Timing {
	return tenure.Timing{
		Lease: 3 * time.Minute, RefreshInterval: time.Minute, Margin: 500 * time.Millisecond,
		CheckInterval: 500 * time.Millisecond, LockTimeout: time.Minute, FenceTimeout: time.Second,
	}
}

// expiringTiming is for a session that expires during a test. The lease leaves a busy
// machine time for a few calls, and the refresh interval cuts no call short.
func expiringTiming() tenure.Timing {
	t := timing()
	t.Lease, t.RefreshInterval = 6*time.Second, 6*time.Second
	return t
}

// node is a session of a node.
type node struct {
	tenure.Session
	suite        *suite
	id           uuid.UUID
	trustEnded   atomic.Bool // MaySend returns false
	nodesChanged atomic.Bool // NodesChanged was called
	declines     atomic.Bool // Campaigns returns false
}

// open opens a session for a new node. The session is aborted when the test ends, or
// earlier if the test hangs.
func (s *suite) open(name string, timing tenure.Timing) *node {
	s.Helper()
	return s.reopen(uuid.New(), name, timing)
}

func (s *suite) reopen(id uuid.UUID, name string, timing tenure.Timing, changes ...func(*tenure.SessionOptions)) *node {
	s.Helper()
	n, err := s.tryOpen(id, name, timing, changes...)
	if err != nil {
		s.Fatalf("open a session for %s: %v", name, err)
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
	options := tenure.SessionOptions{
		Node:        tenure.NodeInfo{ID: id, Name: name, Host: "host-of-" + name},
		Description: tenure.Description{Status: tenure.StatusActive},
		Timing:      timing,
		Clock:       clocks.System(),
		Logger:      slog.New(slog.DiscardHandler),
		MaySend:     func() bool { return !n.trustEnded.Load() },

		Campaigns:    func(string) bool { return !n.declines.Load() },
		NodesChanged: func() { n.nodesChanged.Store(true) },
	}
	for _, change := range changes {
		change(&options)
	}
	session, err := s.backend.Open(ctx, options)
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

// try requests a role once.
func (n *node) try(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	return n.tryAll(role)[0]
}

func (n *node) tryAll(roles ...tenure.Role) []tenure.AcquireResult {
	n.suite.Helper()
	requests := make([]tenure.AcquireRequest, len(roles))
	for i, role := range roles {
		requests[i].Role = role
	}
	return n.request(requests...)
}

func (n *node) request(requests ...tenure.AcquireRequest) []tenure.AcquireResult {
	n.suite.Helper()
	results, err := n.TryAcquire(requests)
	if err != nil {
		n.suite.Fatalf("TryAcquire: %v", err)
	}
	if len(results) != len(requests) {
		n.suite.Fatalf("TryAcquire returned %d results for %d requests", len(results), len(requests))
	}
	return results
}

// tryUntilDecided requests roles until none of them is pending: a backend can defer
// requests for which one call has no time.
func (n *node) tryUntilDecided(roles ...tenure.Role) []tenure.AcquireResult {
	n.suite.Helper()
	results := n.tryAll(roles...)
	n.suite.eventually("no role is pending", func() bool {
		var pending []int
		var again []tenure.Role
		for i, result := range results {
			if result.Outcome == tenure.OutcomePending {
				pending, again = append(pending, i), append(again, roles[i])
			}
		}
		if len(again) == 0 {
			return true
		}
		for i, result := range n.tryAll(again...) {
			results[pending[i]] = result
		}
		return false
	})
	return results
}

// lead acquires a vacant role with one request.
func (n *node) lead(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	result := n.try(role)
	if result.Outcome != tenure.OutcomeGranted {
		n.suite.Fatalf("a vacant role: got %+v, want OutcomeGranted", result)
	}
	return result
}

// leadSoon acquires a role that becomes vacant soon.
func (n *node) leadSoon(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	var result tenure.AcquireResult
	n.suite.eventually("the role is granted", func() bool {
		result = n.tryAgain(role)
		return result.Outcome == tenure.OutcomeGranted
	})
	return result
}

// tryAgain is try for a node that may have been silent: not every backend treats a
// request for a role as a heartbeat.
func (n *node) tryAgain(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	if _, err := n.Heartbeat(tenure.Load{}); err != nil {
		n.suite.Fatalf("heartbeat: %v", err)
	}
	return n.try(role)
}

// tryHeld requests a role that another session must hold.
func (n *node) tryHeld(role tenure.Role) tenure.AcquireResult {
	n.suite.Helper()
	result := n.try(role)
	if result.Outcome != tenure.OutcomeHeld {
		n.suite.Fatalf("a role that another session holds: got %+v, want OutcomeHeld", result)
	}
	return result
}

// resign releases a role.
func (n *node) resign(role tenure.Role, term int64) {
	n.suite.Helper()
	n.release(tenure.ReleaseRequest{Role: role, Term: term, Reason: history.EndResigned})
}

func (n *node) release(releases ...tenure.ReleaseRequest) {
	n.suite.Helper()
	if err := n.Release(releases); err != nil {
		n.suite.Fatalf("Release: %v", err)
	}
}

// drainWakeups calls Wait until no earlier change is left.
func (n *node) drainWakeups() {
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

// woken fails the test unless Wait reports a change.
func (n *node) woken(by string) {
	n.suite.Helper()
	n.awaitChange("Wait is woken by "+by, func() bool { return false })
}

// notified fails the test unless Wait or NodesChanged reports a change of the nodes.
func (n *node) notified(of string) {
	n.suite.Helper()
	n.awaitChange("the notification of "+of+" arrives", n.nodesChanged.Load)
}

func (n *node) awaitChange(what string, notified func() bool) {
	n.suite.Helper()
	n.suite.eventually(what, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		changed, err := n.Wait(ctx)
		if err != nil {
			n.suite.Fatalf("Wait: %v", err)
		}
		if changed || notified() {
			return true
		}
		if _, err := n.Heartbeat(tenure.Load{}); err != nil { // the change can be the expiry of another session
			n.suite.Fatalf("heartbeat: %v", err)
		}
		return false
	})
}

// lost fails the test unless an error matches ErrSessionLost.
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
