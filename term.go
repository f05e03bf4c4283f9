package tenure

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/steps"
)

// Term is one uninterrupted leadership of a role by this node. It is safe for
// concurrent use.
type Term struct {
	election         *Election
	session          *session
	number           int64
	acquiredAt       time.Time
	precedingVacancy time.Duration
	beganAt          time.Duration // on the node's monotonic clock

	ctx          context.Context
	cancel       context.CancelCauseFunc
	ended        atomic.Bool // trust in this term has ended
	usesStopping atomic.Bool // the work has called Stopping

	takenOver bool // from the leader that this node had asked to hand over
	campaign  bool // of Campaign: its caller reports with Resign that the work has returned

	// Guarded by Node.mu. A node can have 10,000 terms: rarely used fields are made on
	// first use.
	stopRequested bool
	acquired      bool     // TryAcquire has returned it
	releaseQueued bool     // queued in the session for release, or dropped with it
	isReleased    bool     // the lock is released or was lost with the session
	plannedEnd    *termEnd // why and how it ends; nil until stopRequested
	stopTimer     func() bool
	released      chan struct{} // closed once isReleased; nil until something waits for that
	releaseErr    error         // set before isReleased

	work struct {
		sync.Mutex
		guards   int
		body     bool          // the function of Run or the caller of Campaign has not returned
		closed   bool          // no new guards
		stopped  bool          // the term was asked to end
		stopping chan struct{} // closed once stopped; nil until Stopping is called
	}
}

// closedChannel is the channel of every wait that is over before it begins.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// termEnd is why a term is given up, the node it is handed over to, and the
// requester.
type termEnd struct {
	reason EndReason
	cause  error
	target uuid.UUID
	by     string
	detail string        // the cause in words, for the records
	nextIn time.Duration // see ReleaseRequest.NextIn
}

// Role returns the role.
func (t *Term) Role() Role { return t.election.role }

// Number returns the term's number, the fencing token. It is larger than the
// number of every earlier term of the role, and at least the Unix time in
// milliseconds, on the database's clock, when the term began. It is not a
// count.
func (t *Term) Number() int64 { return t.number }

// NodeID returns the id of the term's node.
func (t *Term) NodeID() uuid.UUID { return t.election.node.id }

// Backend returns the backend of the term's node.
func (t *Term) Backend() Backend { return t.election.node.backend }

// AcquiredAt returns when the term began, by the database's clock.
func (t *Term) AcquiredAt() time.Time { return t.acquiredAt }

// PrecedingVacancy returns how long the role had no leader before this term, or a negative
// duration if unknown.
func (t *Term) PrecedingVacancy() time.Duration { return t.precedingVacancy }

// Context returns the term's context. It is canceled when trust in the term
// ends, before another node can lead. Its cause, from context.Cause, matches
// [ErrTermEnded].
func (t *Term) Context() context.Context { return t.ctx }

// Stopping returns a channel that is closed when the term is asked to end. From then on,
// work in flight has up to [Config].StopTimeout to finish, with the term still valid, and
// should not begin new work. If the work never calls Stopping, the term's context is
// canceled without this delay.
func (t *Term) Stopping() <-chan struct{} {
	t.usesStopping.Store(true)
	return t.stoppingChannel()
}

func (t *Term) stoppingChannel() <-chan struct{} {
	t.work.Lock()
	defer t.work.Unlock()
	if t.work.stopping == nil {
		t.work.stopping = closedChannel
		if !t.work.stopped {
			t.work.stopping = make(chan struct{})
		}
	}
	return t.work.stopping
}

// Valid reports whether this node can trust the term at this moment. It uses
// the node's clocks only, takes no lock and does not allocate.
func (t *Term) Valid() bool {
	return !t.ended.Load() && t.session.trust.valid()
}

// Remaining returns how long the term stays valid if no further heartbeat is
// acknowledged, or 0 if it has ended.
func (t *Term) Remaining() time.Duration {
	if t.ended.Load() {
		return 0
	}
	return t.session.trust.remaining(math.MaxInt64)
}

// LockConn returns the network connection with this term's lock, or nil if the lock is on
// no connection, as with leases. While any process has a duplicate of its descriptor open,
// the server keeps the lock even if this process dies, for at most one lease after its
// last heartbeat. Use it to prevent a new term until another process has ended. The
// session keeps using the connection: duplicate the descriptor within Control, do not read
// or write, and do not change its blocking mode, as [os.File.Fd] would. LockConn may be
// called at any time; after the session has ended, Control fails.
func (t *Term) LockConn() (syscall.RawConn, error) {
	if provider, ok := t.session.conn.(interface {
		LockConn() (syscall.RawConn, error)
	}); ok {
		return provider.LockConn()
	}
	return nil, nil
}

// Resign gives up the term and waits until the role is free. For a term from
// [Election.Campaign] it also reports the return of the work under the term: call it
// exactly once for each such term, even if the term was lost. Do not call it from the
// function of [Election.Run], because it would wait for this function: return Done or an
// error instead.
//
// If ctx ends first, the error matches ErrShutdown, and the resignation continues.
func (t *Term) Resign(ctx context.Context) error { return t.election.resign(ctx, t) }

// Guard keeps a piece of work within a term: the role is not released until the
// guard is done. Obtain it with [Term.Guard] or [Election.Guard] and call Done
// when the work has returned.
type Guard struct {
	term *Term
	once sync.Once
}

// Guard registers a piece of work with the term. The error matches ErrNotLeader if the
// term is not valid or was asked to end.
func (t *Term) Guard() (*Guard, error) {
	t.work.Lock()
	defer t.work.Unlock()
	if t.work.closed || !t.Valid() {
		return nil, ErrNotLeader
	}
	t.work.guards++
	return &Guard{term: t}, nil
}

// Term returns the guard's term.
func (g *Guard) Term() *Term { return g.term }

// Context returns the context of the guard's term.
func (g *Guard) Context() context.Context { return g.term.ctx }

// Stopping returns a channel that is closed when the guard's term is asked to end. Unlike
// [Term.Stopping], it does not change when the term's context is canceled.
func (g *Guard) Stopping() <-chan struct{} { return g.term.stoppingChannel() }

// Valid reports whether the guard's term is valid.
func (g *Guard) Valid() bool { return g.term.Valid() }

// Done reports the work as returned. Only the first call counts.
func (g *Guard) Done() {
	g.once.Do(func() {
		g.term.work.Lock()
		g.term.work.guards--
		last := g.term.work.guards == 0
		g.term.workReturnsLocked()
		g.term.work.Unlock()
		if last {
			g.term.advance()
		}
	})
}

// mainReturned records the return of the function of Run, or of the work of Campaign's
// caller, and advances the end of the term.
func (t *Term) mainReturned() {
	t.clearMain()
	t.advance()
}

func (t *Term) clearMain() {
	t.work.Lock()
	defer t.work.Unlock()
	t.work.body = false
	t.workReturnsLocked()
}

// workReturnsLocked emits that no work of the term runs, and that none can begin. t.work must
// be locked.
func (t *Term) workReturnsLocked() {
	if t.work.closed && !t.work.body && t.work.guards == 0 {
		t.session.step(steps.WorkReturns, t.Role().Name(), t.number)
	}
}

// workState reports whether work has not returned, and whether it may finish gracefully,
// within StopTimeout, after the term was asked to end.
func (t *Term) workState() (running, graceful bool) {
	t.work.Lock()
	defer t.work.Unlock()
	running = t.work.guards > 0 || t.work.body
	graceful = t.work.guards > 0 || t.work.body && t.usesStopping.Load()
	return running, graceful
}

// unresigned returns the term's number if it has ended and its caller of Campaign has
// not called Resign, otherwise 0.
func (t *Term) unresigned() int64 {
	t.work.Lock()
	defer t.work.Unlock()
	if t.campaign && t.work.body && t.ended.Load() {
		return t.number
	}
	return 0
}

// advance continues the end of the term after work has returned.
func (t *Term) advance() {
	n := t.election.node
	n.mu.Lock()
	defer n.mu.Unlock()
	t.advanceLocked()
}

// stopLocked asks the term to end.
func (t *Term) stopLocked(why termEnd) {
	if t.stopRequested {
		return
	}
	t.stopRequested, t.plannedEnd = true, &why
	t.work.Lock()
	t.work.closed, t.work.stopped = true, true
	if t.work.stopping != nil {
		close(t.work.stopping)
	}
	t.work.Unlock()
	n := t.election.node
	t.stopTimer = n.clock.AfterFunc(n.cfg.StopTimeout, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !t.releaseQueued {
			n.log.Warn("work in flight did not finish in time: its context is canceled",
				"role", t.Role().Name(), "term", t.number, "stop_timeout", n.cfg.StopTimeout)
			t.endLocked(t.plannedEnd.cause)
		}
	})
	t.advanceLocked()
}

// releasedLocked returns a channel that is closed when the lock is released or was lost
// with the session.
func (t *Term) releasedLocked() <-chan struct{} {
	switch {
	case t.isReleased:
		return closedChannel
	case t.released == nil:
		t.released = make(chan struct{})
	}
	return t.released
}

// setReleasedLocked records the lock as released, or lost with the session.
func (t *Term) setReleasedLocked() {
	t.isReleased = true
	if t.released != nil {
		close(t.released)
	}
}

// endLocked ends the term: trust ends now, the rest follows when the work has
// returned.
func (t *Term) endLocked(cause error) {
	t.endTrustLocked(cause)
	t.advanceLocked()
}

// endTrustLocked ends trust in the term and cancels its context, in this order.
func (t *Term) endTrustLocked(cause error) {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	t.election.current.CompareAndSwap(t, nil)
	t.work.Lock()
	t.work.closed = true
	t.session.step(steps.EndsTerm, t.Role().Name(), t.number)
	t.workReturnsLocked()
	t.work.Unlock()
	t.cancel(cause)
	t.session.trust.remove(t)
}

// advanceLocked takes every possible step of the term's end. In this order, trust ends,
// the context is canceled, the work returns, and the lock is released (Invariant 4). It is
// called whenever a step may have become possible.
func (t *Term) advanceLocked() {
	running, graceful := t.workState()
	if t.stopRequested && !graceful {
		t.endTrustLocked(t.plannedEnd.cause)
	}
	if !t.ended.Load() || running || t.releaseQueued {
		return
	}
	t.releaseQueued = true
	if t.stopTimer != nil {
		t.stopTimer()
	}
	t.session.queueReleaseLocked(t)
}
