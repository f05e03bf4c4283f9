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
)

// Why a session is gone, as its client sees it.
var (
	errAborted = gone("closed by the client")
	errRevoked = gone("terminated by an administrator")
	errSilent  = gone("silent for one lease")
	errBuried  = gone("the node was marked as dead")
)

func gone(why string) error {
	return fmt.Errorf("%w: %w: %s", tenure.ErrSessionLost, tenure.ErrConnection, why)
}

// session is a session from both ends: what the database keeps of it, and what
// its client knows.
type session struct {
	db      *Database
	opening tenure.SessionOptions
	number  int64
	news    chan struct{}
	lost    chan struct{} // closed when the client knows that the connection is gone

	// Under the database's mutex.
	held       map[string]*role // whose locks it holds
	leaseUntil time.Duration
	stopLease  func() bool
	ended      bool          // the database has given it up; it holds nothing
	cause      error         // why it ended or the connection is gone
	silence    chan struct{} // while no answers come; closed when they do again
	stuck      bool          // in a call that silence keeps from its answer
	waiting    bool          // in Wait
	interrupt  <-chan struct{}
	noticed    bool // there is news that Wait has not returned with
}

var _ tenure.Session = (*session)(nil)

func newSession(d *Database, opening tenure.SessionOptions) *session {
	return &session{
		db: d, opening: opening, news: make(chan struct{}, 1), lost: make(chan struct{}), held: map[string]*role{},
	}
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return s.number }

// call performs one statement, which takes effect under the database's mutex.
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
		s.hear(s.cause)
		return fmt.Errorf("%s: %w", name, s.cause)
	case d.nodes[s.opening.Node.ID] != s:
		return fmt.Errorf("%s: %w", name, tenure.ErrSuperseded)
	case d.failure != nil:
		return fmt.Errorf("%s: %w", name, d.failure)
	}
	s.renew()
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
		d.noted()
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
			attempts[i] = s.db.try(s, c)
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
		r := s.record()
		r.beat(load, s.db.clock.Now())
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
			d.end(r, false)
			d.unlock(s, name)
		}
		d.tell()
		return nil
	})
}

// Requests implements [tenure.Session].
func (s *session) Requests() ([]tenure.Request, error) {
	var requests []tenure.Request
	err := s.call("requests", func() error {
		r := s.record()
		requests, r.requests = r.requests, nil
		r.follow(requests)
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
	d.noted()
	d.mu.Unlock()
	changed := false
	select {
	case <-s.lost:
	case <-s.news:
		changed = true
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.waiting, s.noticed = false, len(s.news) > 0
	if s.isLost() {
		return false, fmt.Errorf("wait: %w", s.cause)
	}
	return changed, nil
}

// Close implements [tenure.Session].
func (s *session) Close() error {
	return s.call("close", func() error {
		s.hear(errAborted)
		s.end(errAborted, false)
		return nil
	})
}

// Abort implements [tenure.Session]. The database does not hear of it from a
// silent session, whose roles stay locked until its lease ends.
func (s *session) Abort() {
	d := s.db
	d.mu.Lock()
	defer d.mu.Unlock()
	s.hear(errAborted)
	if s.silence == nil {
		s.end(errAborted, true)
	}
}

// wake makes Wait return, now or when it is next called, unless the news cannot
// reach the client. Under the mutex.
func (s *session) wake() {
	if s.silence != nil || s.ended {
		return
	}
	s.noticed = true
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// renew restarts the lease. Under the mutex.
func (s *session) renew() { s.leaseUntil = s.db.clock.Now().Mono + s.opening.Timing.Lease }

// watchLease ends the session when it has been silent for one lease. Under the
// mutex.
func (s *session) watchLease() {
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
		s.watchLease()
		return
	}
	if s.silence == nil {
		s.hear(errSilent)
	}
	s.end(errSilent, true)
}

// hear makes the client know that the connection is gone. Under the mutex.
func (s *session) hear(cause error) {
	if s.isLost() {
		return
	}
	s.cause = cause
	close(s.lost)
	delete(s.db.connections, s)
	s.db.noted()
}

func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// end makes the database give the session up and free what it holds. Under the
// mutex.
func (s *session) end(cause error, unclean bool) {
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
		d.end(r, unclean)
		if unclean {
			r.patient, r.patientUntil = id, d.clock.Now().Mono+courtesy
		}
		d.unlock(s, name)
	}
	if d.nodes[id] == s {
		delete(d.nodes, id)
		if unclean {
			d.records[id].bury()
		} else {
			delete(d.records, id)
		}
	}
	d.tell()
}

// settled reports whether the client waits for time to pass, for news, or for
// an answer that does not come. Under the mutex.
func (s *session) settled() bool {
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
