package tenure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/fsm"
)

// trustTick is how often trust is looked at, at least, apart from its deadline:
// the wall clock may have jumped. For short leases it is a tenth of the lease.
const trustTick = time.Second

// session is one incarnation of a node as the engine sees it. One goroutine,
// serve, talks to the connection, without deadlines; a timer ends trust beside
// it; a third, closeWhenIdle, closes the connection when trust has ended and the work
// has returned.
//
// The node's mutex guards bookkeeping only. No code of the program, no log
// handler and no I/O runs under it, and trust ends without it.
type session struct {
	node      *Node
	conn      Session
	registrar Registrar // conn, if it is one
	trust     trust
	lost      chan struct{} // closed when the session is given up
	idle      chan struct{} // closed when it is given up and all work under it has returned

	// Guarded by Node.mu.
	started            bool
	over               bool
	opened             time.Duration
	nextBeat           time.Duration
	refreshers         []chan error // waiting for the next heartbeat
	terms              map[*Term]struct{}
	releases           []release
	releasing          []release   // in a call of Release
	trying             []*Election // in a call of TryAcquire
	requested          bool        // requests may wait
	calls              []call
	descriptionVersion uint64 // of the description that the registry has
	describeAt         time.Duration
	describers         []chan error // waiting for the next write of the description
	leaving            bool
	kicked             bool
	interrupt          context.CancelFunc // of the Wait in progress
}

// release is a role to give up: a term, or a lock without one.
type release struct {
	election *Election
	term     *Term // nil for a lock that nobody wants any more
	number   int64
}

func newSession(n *Node) *session {
	s := &session{
		node: n, lost: make(chan struct{}), idle: make(chan struct{}), terms: map[*Term]struct{}{},
	}
	s.trust.clock, s.trust.expired = n.clock, s.expire
	return s
}

// startLocked makes s the node's session.
func (s *session) startLocked(sent Instant) {
	n := s.node
	n.tally.sessions++
	n.tally.heartbeats.add(n.clock.Now().Mono - sent.Mono)
	s.opened = sent.Mono
	s.nextBeat = sent.Mono + n.cfg.RefreshInterval
	n.session = s
	s.started = true
	s.trust.watch(min(trustTick, n.cfg.Lease/10))
	s.attemptAllNowLocked() // among it, what the node's last session may be about to free
	n.log.Info("session opened", "incarnation", s.conn.Incarnation())
	n.group.Add(1)
	go s.serve()
	n.announceLocked()
}

// expire ends the session when the deadline of trust has passed: first trust
// and the contexts, for which the mutex is not needed, then the rest.
func (s *session) expire() {
	_ = s.trust.end(ErrTrustExpired)
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.started {
		s.endLocked(ErrTrustExpired)
	}
}

// lose gives the session up after an error, as expire does.
func (s *session) lose(err error) {
	_ = s.trust.end(s.causeOf(err))
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.endLocked(err)
}

// endTrust ends trust if an answer of the connection says that the session is
// lost, before the mutex is waited for. It returns the error.
func (s *session) endTrust(err error) error {
	if errors.Is(err, ErrSessionLost) {
		_ = s.trust.end(s.causeOf(err))
	}
	return err
}

// causeOf is why terms end when the session ends with an error.
func (s *session) causeOf(err error) error {
	if !s.trust.valid() && !errors.Is(err, ErrConnection) {
		err = withDetail(ErrTrustExpired, err)
	}
	if !errors.Is(err, ErrTermEnded) {
		err = withDetail(ErrSessionLost, err)
	}
	return err
}

// endLocked gives the session up: trust ends, contexts are cancelled, then the
// elections are told. The connection lives on until the work has returned.
func (s *session) endLocked(err error) {
	if s.over {
		return
	}
	cause := s.trust.end(s.causeOf(err)) // that of an earlier end, if there was one
	s.over = true
	n := s.node
	if n.session == s {
		n.session = nil
	}
	gone := slices.Concat(s.releasing, s.releases)
	s.releases, s.releasing = nil, nil
	terms := slices.Collect(maps.Keys(s.terms))
	for _, term := range terms {
		if term.election.State() == Releasing {
			term.releaseErr = fmt.Errorf("releasing %s: %w", term.Role(), cause)
		}
		term.endLocked(cause)
	}
	for _, r := range gone { // their work has returned
		s.dropRoleLocked(r)
	}
	for _, term := range terms {
		if e := term.election; e.State() == Releasing {
			e.stepLocked(fsm.DbError, term, cause)
		} else {
			e.stepLocked(fsm.HealthFailed, term, cause)
		}
	}
	s.endAttemptsLocked(cause)
	for _, done := range s.refreshers {
		done <- cause
	}
	s.refreshers = nil
	s.failCallsLocked(cause)
	if !s.leaving {
		n.log.Warn("session ended", "incarnation", s.conn.Incarnation(), "error", cause)
	}
	s.checkIdleLocked()
	n.lastSessionEnd = Instant{}
	if errors.Is(cause, ErrConnection) && !timedOut(cause) {
		n.lastSessionEnd = n.clock.Now()
	}
	n.group.Add(1)
	go s.closeWhenIdle(len(s.terms) == 0 || errors.Is(cause, ErrConnection)) // no work, or no locks any more
	s.kickLocked()
	n.announceLocked()
}

// timedOut reports that the other side of a connection did not answer: it may not
// know that the connection is over.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// endAttemptsLocked fails the attempts that the session was making.
func (s *session) endAttemptsLocked(cause error) {
	for _, e := range s.trying {
		e.attempt.inFlight, e.attempt.waiting = false, false
		e.wakeLocked()
	}
	s.trying = nil
	for e := range s.node.followers {
		e.attempt.waiting, e.attempt.fencedAt = false, 0
		if e.State() == Acquiring {
			e.attempt.newCause(cause)
			e.stepLocked(fsm.DbError, nil, cause)
		}
	}
}

// closeWhenIdle closes the connection, now or when all work has returned, and lets the
// node open its next session.
func (s *session) closeWhenIdle(now bool) {
	defer s.node.group.Done()
	if now {
		s.conn.Abort()
		close(s.lost)
		return
	}
	close(s.lost)
	select {
	case <-s.idle:
	case <-s.node.abandonWork:
	}
	s.conn.Abort()
}

// checkIdleLocked notices when the last work under a lost session has returned.
func (s *session) checkIdleLocked() {
	if s.over && len(s.terms) == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// queueReleaseLocked takes over a term whose trust has ended and whose work has
// returned.
func (s *session) queueReleaseLocked(t *Term) {
	r := release{election: t.election, term: t, number: t.number}
	if s.over {
		s.dropRoleLocked(r)
		return
	}
	s.releases = append(s.releases, r)
	s.kickLocked()
}

// queueUnlockLocked releases a lock that no election wants any more.
func (s *session) queueUnlockLocked(e *Election, number int64) {
	e.attempt.unlocking = true
	s.releases = append(s.releases, release{election: e, number: number})
	s.kickLocked()
}

// dropRoleLocked drops a role whose lock is gone.
func (s *session) dropRoleLocked(r release) {
	e := r.election
	if r.term == nil {
		e.attempt.unlocking = false
	} else {
		delete(s.terms, r.term)
		if e.term == r.term {
			e.term = nil
		}
		close(r.term.released)
		s.checkIdleLocked()
		s.node.kickLocked()
	}
	e.wakeLocked()
}

// kickLocked makes serve look again at what there is to do.
func (s *session) kickLocked() {
	s.kicked = true
	if s.interrupt != nil {
		s.interrupt()
	}
}

// serve talks to the connection until the session ends. It is the only caller
// of its methods, but for Abort.
func (s *session) serve() {
	defer s.node.group.Done()
	for {
		job, pause := s.next()
		var err error
		switch job {
		case jobEnd:
			return
		case jobHeartbeat:
			err = s.heartbeat()
		case jobRelease:
			err = s.release()
		case jobRequests:
			err = s.requests()
		case jobDescribe:
			err = s.describe()
		case jobAnswer:
			err = s.runCall()
		case jobAcquire:
			err = s.acquire()
		case jobWait:
			err = s.wait(pause)
		case jobLeave:
			err = errors.Join(ErrClosed, s.conn.Close())
		}
		if err != nil {
			s.lose(err)
		}
	}
}

type job uint8

const (
	jobEnd job = iota
	jobHeartbeat
	jobRelease
	jobRequests
	jobDescribe
	jobAnswer
	jobAcquire
	jobLeave
	jobWait
)

// next chooses what to do now, or how long to wait.
func (s *session) next() (job, time.Duration) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if !s.over && !s.trust.valid() {
		s.endLocked(ErrTrustExpired)
	}
	now := n.clock.Now().Mono
	switch {
	case s.over:
		return jobEnd, 0
	case now >= s.nextBeat || len(s.refreshers) > 0:
		return jobHeartbeat, 0
	case len(s.releases) > 0:
		return jobRelease, 0
	case s.leaving && len(s.terms) == 0:
		return jobLeave, 0
	case s.registrar != nil && s.descriptionVersion != n.descriptionVersion && now >= s.describeAt:
		return jobDescribe, 0
	case len(s.calls) > 0:
		return jobAnswer, 0
	}
	due, next := s.dueLocked(now)
	if len(due) > 0 {
		s.trying = due
		return jobAcquire, 0
	}
	if s.requested && (len(s.terms) > 0 || s.registrar != nil) {
		return jobRequests, 0
	}
	if s.registrar != nil && s.descriptionVersion != n.descriptionVersion {
		next = min(next, s.describeAt)
	}
	return jobWait, min(next, s.nextBeat) - now
}

// wait waits for news, for at most d.
func (s *session) wait(d time.Duration) error {
	n := s.node
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n.mu.Lock()
	if s.kicked {
		s.kicked = false
		n.mu.Unlock()
		return nil
	}
	s.interrupt = cancel
	n.mu.Unlock()
	stop := n.clock.AfterFunc(d, cancel)
	changed, err := s.conn.Wait(ctx)
	stop()
	if err != nil {
		err = s.endTrust(withDetail(ErrSessionLost, err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.interrupt, s.kicked = nil, false
	if err != nil {
		return err
	}
	if changed {
		s.requested = true
		s.attemptAllNowLocked()
		n.announceLocked()
	}
	return nil
}

// heartbeat proves that the session stands. Trust counts from before it is
// sent.
func (s *session) heartbeat() error {
	n := s.node
	if err := s.await(n.callLoad()); err != nil {
		return err
	}
	load := n.lastLoad()
	n.mu.Lock()
	refreshers := s.refreshers
	s.refreshers = nil
	n.mu.Unlock()

	sent := n.clock.Now()
	pulse, err := s.conn.Heartbeat(load)
	for _, done := range refreshers {
		done <- err
	}
	if errors.Is(err, ErrSessionLost) {
		return err
	}
	if err == nil && !s.trust.extend(sent.Add(n.cfg.Lease-n.cfg.Margin)) {
		return ErrTrustExpired
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.tally.heartbeatFailures++
		s.nextBeat = n.clock.Now().Mono + n.cfg.RefreshInterval/10
		n.log.Warn("heartbeat failed", "error", err, "trust_remaining", s.trust.remaining(n.cfg.Lease))
		return nil
	}
	n.tally.heartbeats.add(n.clock.Now().Mono - sent.Mono)
	n.outage = false
	s.nextBeat = sent.Mono + n.cfg.RefreshInterval
	s.requested = s.requested || pulse.Requests
	return nil
}

// release gives up everything that is to be given up, in one batch.
func (s *session) release() error {
	n := s.node
	n.mu.Lock()
	s.releasing, s.releases = s.releases, nil
	batch := make([]Release, len(s.releasing))
	for i, r := range s.releasing {
		batch[i] = Release{Role: r.election.role, Term: r.number, Reason: EndResigned}
		if t := r.term; t != nil {
			batch[i].Reason, batch[i].By = t.ending.reason, t.ending.by
			if t.ending.reason == EndHandedOver {
				batch[i].For, batch[i].ReserveFor = t.ending.target, n.cfg.CheckInterval
			}
		}
	}
	n.mu.Unlock()
	err := s.conn.Release(batch)
	if err != nil {
		err = s.endTrust(withDetail(ErrSessionLost, err)) // a lock may still be held
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.over || err != nil {
		return err
	}
	released := s.releasing
	s.releasing = nil
	for _, r := range released {
		s.dropRoleLocked(r)
		if r.term != nil {
			r.election.stepLocked(fsm.ReleaseSucceeded, r.term, nil)
		}
	}
	return nil
}
