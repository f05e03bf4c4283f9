package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/steps"
)

// trustTick is the longest interval between two checks of trust: the wall clock
// may jump. For short leases it is a tenth of the lease.
const trustTick = time.Second

func newSession(n *Node) *session {
	s := &session{
		node: n, lost: make(chan struct{}), idle: make(chan struct{}), terms: map[*Term]struct{}{},
	}
	s.trust.clock, s.trust.onExpired = n.clock, s.expire
	s.trust.onEnd = func() { s.step(steps.GivesUp, "", 0) }
	return s
}

// startLocked makes s the node's session.
func (s *session) startLocked(sent clocks.Instant) {
	n := s.node
	n.counters.sessions++
	n.counters.heartbeats.add(n.clock.Now().Mono - sent.Mono)
	s.openedAt = sent.Mono
	s.nextBeat = sent.Mono + n.beatIntervalLocked()
	n.session = s
	s.started = true
	s.trust.watch(min(trustTick, n.cfg.Lease/10))
	s.attemptAllNowLocked() // the server may just be releasing the locks of the node's last session
	n.log.Info("session opened", "incarnation", s.conn.Incarnation())
	n.group.Add(1)
	go s.serve() // exits when s ends; Close waits through n.group
	n.notifySubscribersLocked()
}

// serve calls the connection until the session ends. It is the only caller of
// the connection's methods, except Abort.
func (s *session) serve() {
	defer s.node.group.Done()
	for {
		job, pause := s.nextJob()
		var err error
		switch job {
		case jobEnd:
			return
		case jobHeartbeat:
			err = s.heartbeat()
		case jobRelease:
			err = s.release()
		case jobRequests:
			err = s.handleRequests()
		case jobDescribe:
			err = s.writeDescription()
		case jobCall:
			err = s.runCall()
		case jobAcquire:
			err = s.acquire()
		case jobWait:
			err = s.wait(pause)
		case jobLeave:
			err = errors.Join(ErrClosed, s.conn.Close())
		}
		if err != nil {
			s.fail(err)
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
	jobCall
	jobAcquire
	jobLeave
	jobWait
)

// nextJob returns the next job, and for jobWait how long to wait.
func (s *session) nextJob() (job, time.Duration) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if !s.ended && !s.trust.valid() {
		s.endLocked(ErrTrustExpired)
	}
	now := n.clock.Now().Mono
	if first := s.firstJobLocked(now); first != jobWait {
		return first, 0
	}
	due, next := s.dueLocked(now)
	if len(due) > 0 {
		s.acquireBatch = due
		return jobAcquire, 0
	}
	if s.beatSoon {
		return jobHeartbeat, 0
	}
	if s.requestsPending {
		return jobRequests, 0
	}
	if s.describesLocked() {
		next = min(next, s.describeAt)
	}
	return jobWait, min(next, s.nextBeat) - now
}

// firstJobLocked returns the job before acquiring roles, or jobWait if there is none.
func (s *session) firstJobLocked(now time.Duration) job {
	switch {
	case s.ended:
		return jobEnd
	case now >= s.nextBeat || len(s.heartbeatWaiters) > 0:
		return jobHeartbeat
	case len(s.releases) > 0:
		return jobRelease
	case s.leaving && len(s.terms) == 0:
		return jobLeave
	case s.describesLocked() && now >= s.describeAt:
		return jobDescribe
	case len(s.calls) > 0:
		return jobCall
	}
	return jobWait
}

// describesLocked reports whether the registry has an old description of the node.
func (s *session) describesLocked() bool {
	return s.registry != nil && s.descriptionVersion != s.node.descriptionVersion
}

// wait waits until a notification arrives, wakeLocked is called, or d has
// passed.
func (s *session) wait(d time.Duration) error {
	n := s.node
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n.mu.Lock()
	if s.wakePending {
		s.wakePending = false
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
	s.interrupt, s.wakePending = nil, false
	if err != nil {
		return err
	}
	if changed {
		s.requestsPending = true
		s.attemptAllNowLocked()
		n.notifySubscribersLocked()
	}
	return nil
}

// await waits until done is closed, if it is not nil, for a bounded time. It
// listens to the connection while it waits: if the server ends the session,
// trust ends immediately. n.mu must not be held.
func (s *session) await(done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	n := s.node
	n.group.Go(func() { // exits when done is closed; Close waits through n.group
		<-done
		n.mu.Lock()
		defer n.mu.Unlock()
		s.wakeLocked()
	})
	until := n.clock.Now().Mono + n.cfg.RefreshInterval/maxWaitDivisor
	for {
		select {
		case <-done:
			return nil
		default:
		}
		left := until - n.clock.Now().Mono
		if left <= 0 {
			return nil
		}
		if err := s.wait(left); err != nil {
			return err
		}
	}
}

// heartbeat proves the session to be live. The trust window begins when the heartbeat is
// sent.
func (s *session) heartbeat() error {
	n := s.node
	if err := s.await(n.callLoad()); err != nil {
		return err
	}
	load := n.lastLoad()
	n.mu.Lock()
	s.callers, s.heartbeatWaiters, s.beatSoon = s.heartbeatWaiters, nil, false
	n.mu.Unlock()

	sent := n.clock.Now()
	s.sendsHeartbeat(sent)
	pending, err := s.conn.Heartbeat(load)
	if errors.Is(err, ErrSessionLost) {
		return err
	}
	if err == nil && !s.trust.extend(limitTrust(s.conn, sent.Add(n.cfg.Lease-n.cfg.Margin))) {
		return ErrTrustExpired
	}
	if err == nil {
		s.getsAnswer()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	defer s.answerLocked(err)
	if err != nil {
		n.counters.heartbeatFailures++
		s.nextBeat = n.clock.Now().Mono + n.cfg.RefreshInterval/10
		n.log.Warn("heartbeat failed", "error", err, "trust_remaining", s.trust.remaining(n.cfg.Lease))
		return nil
	}
	n.counters.heartbeats.add(n.clock.Now().Mono - sent.Mono)
	n.outage, s.proven = false, true
	n.drainEndedLocked(load)
	s.nextBeat = sent.Mono + n.beatIntervalLocked()
	s.requestsPending = s.requestsPending || pending
	return nil
}
