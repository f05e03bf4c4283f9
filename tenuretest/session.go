package tenuretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// Why a session is gone, as its client sees it.
var (
	errAborted    = sessionLost("closed by the client")
	errRevoked    = sessionLost("terminated by an administrator")
	errSilent     = sessionLost("silent for one lease")
	errMarkedDead = sessionLost("the node was marked as dead")
)

func sessionLost(why string) error {
	return fmt.Errorf("%w: %w: %s", tenure.ErrSessionLost, tenure.ErrConnection, why)
}

// session is a session from both ends: the database's and the client's.
type session struct {
	db      *Database
	opening tenure.SessionOptions
	number  int64
	wakeups chan struct{}
	lost    chan struct{} // closed when the client knows that the connection is gone

	// Guarded by db.mu.
	held       map[string]*role // whose locks it holds
	leaseUntil time.Duration
	stopLease  func() bool
	ended      bool          // the database has given it up; it holds nothing
	cause      error         // why it ended or the connection is gone
	silence    chan struct{} // while no answers come; closed when they do again
	stuck      bool          // in a call that silence keeps from its answer
	waiting    bool          // in Wait
	interrupt  <-chan struct{}
	noticed    bool // there is a change that Wait has not reported
}

var _ tenure.Session = (*session)(nil)

func newSession(d *Database, opening tenure.SessionOptions) *session {
	return &session{
		db: d, opening: opening, wakeups: make(chan struct{}, 1), lost: make(chan struct{}), held: map[string]*role{},
	}
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return s.number }

// call performs one statement. It takes effect under the database's mutex.
func (s *session) call(name string, effect func() error) error {
	s.awaitAnswer()
	if !s.opening.MaySend() {
		return fmt.Errorf("%s: %w: trust has ended", name, tenure.ErrSessionLost)
	}
	d := s.db
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case s.ended || s.isLost():
		s.loseLocked(s.cause)
		return fmt.Errorf("%s: %w", name, s.cause)
	case d.nodes[s.opening.Node.ID] != s:
		return fmt.Errorf("%s: %w", name, tenure.ErrSuperseded)
	case d.failure != nil:
		return fmt.Errorf("%s: %w", name, d.failure)
	}
	s.renewLocked()
	if err := effect(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// awaitAnswer blocks while the session is silent.
func (s *session) awaitAnswer() {
	d := s.db
	d.mu.Lock()
	defer d.mu.Unlock()
	for s.silence != nil && !s.isLost() {
		silence := s.silence
		s.stuck = true
		d.recheck()
		d.mu.Unlock()
		select {
		case <-silence:
		case <-s.lost:
		}
		d.mu.Lock()
		s.stuck = false
	}
}

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	attempts := make([]tenure.AcquireResult, len(candidates))
	err := s.call("acquire", func() error {
		for i, c := range candidates {
			attempts[i] = s.db.tryLocked(s, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return attempts, nil
}

// Heartbeat implements [tenure.Session].
func (s *session) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	err = s.call("heartbeat", func() error {
		r := s.recordLocked()
		r.recordHeartbeatLocked(load, s.db.clock.Now())
		requestsPending = len(r.requests) > 0
		for _, r := range s.held {
			requestsPending = requestsPending || len(r.requests) > 0
		}
		return nil
	})
	return requestsPending, err
}

// Release implements [tenure.Session].
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	return s.call("release", func() error {
		d := s.db
		for _, release := range releases {
			name := release.Role.Name()
			r := s.held[name]
			if r == nil {
				return errors.New("the session does not hold the role " + name)
			}
			if r.leader == s && release.Target != uuid.Nil {
				r.reservedFor, r.reservedUntil = release.Target, d.clock.Now().Mono+release.Reservation
			}
			d.endTermLocked(r, release.Reason == endreason.Crashed || release.Reason == endreason.LeaseExpired)
			d.releaseLocked(s, name)
		}
		d.notifyLocked()
		return nil
	})
}

// Requests implements [tenure.Session].
func (s *session) Requests() ([]tenure.Request, error) {
	var requests []tenure.Request
	err := s.call("requests", func() error {
		r := s.recordLocked()
		requests, r.requests = r.requests, nil
		r.followLocked(requests)
		for _, name := range slices.Sorted(maps.Keys(s.held)) {
			requests = append(requests, s.held[name].requests...)
			s.held[name].requests = nil
		}
		return nil
	})
	return requests, err
}

// Wait implements [tenure.Session].
func (s *session) Wait(ctx context.Context) (bool, error) {
	d := s.db
	d.mu.Lock()
	s.waiting, s.interrupt = true, ctx.Done()
	d.recheck()
	d.mu.Unlock()
	changed := false
	select {
	case <-s.lost:
	case <-s.wakeups:
		changed = true
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.waiting, s.noticed = false, len(s.wakeups) > 0
	if s.isLost() {
		return false, fmt.Errorf("wait: %w", s.cause)
	}
	return changed, nil
}

// Close implements [tenure.Session].
func (s *session) Close() error {
	return s.call("close", func() error {
		s.loseLocked(errAborted)
		s.endLocked(errAborted, false)
		return nil
	})
}

// Abort implements [tenure.Session]. The database does not notice the end of a
// silent session; its roles stay locked until its lease expires.
func (s *session) Abort() {
	d := s.db
	d.mu.Lock()
	defer d.mu.Unlock()
	s.loseLocked(errAborted)
	if s.silence == nil {
		s.endLocked(errAborted, true)
	}
}

// wakeLocked makes the current or next Wait return, unless the session is
// silent.
func (s *session) wakeLocked() {
	if s.silence != nil || s.ended {
		return
	}
	s.noticed = true
	wakeup.Send(s.wakeups)
}

// renewLocked restarts the lease.
func (s *session) renewLocked() { s.leaseUntil = s.db.clock.Now().Mono + s.opening.Timing.Lease }

// watchLeaseLocked ends the session when it has been silent for one lease.
func (s *session) watchLeaseLocked() {
	left := s.leaseUntil - s.db.clock.Now().Mono
	s.stopLease = s.db.clock.AfterFunc(left, s.leaseEnds)
}

func (s *session) leaseEnds() {
	d := s.db
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.ended {
		return
	}
	if s.leaseUntil > d.clock.Now().Mono {
		s.watchLeaseLocked()
		return
	}
	if s.silence == nil {
		s.loseLocked(errSilent)
	}
	s.endLocked(errSilent, true)
}

// loseLocked closes the client's end of the connection.
func (s *session) loseLocked(cause error) {
	if s.isLost() {
		return
	}
	s.cause = cause
	close(s.lost)
	delete(s.db.connections, s)
	s.db.recheck()
}

func (s *session) isLost() bool {
	return wakeup.Closed(s.lost)
}

// endLocked ends the session in the database and frees its roles.
func (s *session) endLocked(cause error, unclean bool) {
	if s.ended {
		return
	}
	d, id := s.db, s.opening.Node.ID
	s.ended = true
	if s.cause == nil {
		s.cause = cause
	}
	s.stopLease()
	for name, r := range s.held {
		d.endTermLocked(r, unclean)
		if unclean {
			r.cooldownFor, r.cooldownUntil = id, d.clock.Now().Mono+cooldown
		}
		d.releaseLocked(s, name)
	}
	if d.nodes[id] == s {
		delete(d.nodes, id)
		if unclean {
			d.records[id].markDeadLocked()
		} else {
			delete(d.records, id)
		}
	}
	d.notifyLocked()
}

// settledLocked reports whether the client waits for time to pass, for a notification, or
// for an answer kept back.
func (s *session) settledLocked() bool {
	switch {
	case s.stuck && s.silence != nil:
		return true
	case !s.waiting || s.noticed:
		return false
	}
	select {
	case <-s.interrupt:
		return false
	default:
		return true
	}
}
