package tenure

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// Term is one uninterrupted holding of a role by this node. It is safe for
// concurrent use.
type Term struct {
	election   *Election
	session    *session
	number     int64
	acquiredAt time.Time
	precedingVacancy     time.Duration
	beganAt      time.Duration // on the node's monotonic clock
	campaign   bool          // of Campaign: its holder says when the work has returned

	ctx          context.Context
	cancel       context.CancelCauseFunc
	ended         atomic.Bool // trust in this term has ended
	usesStopping atomic.Bool // somebody asked for Stopping

	stopping chan struct{} // closed: take no new work
	released chan struct{} // closed: the lock is free, or was lost with the session

	// Guarded by Node.mu.
	stopRequested     bool
	plannedEnd        termEnd // why it is being given up
	stopTimer     func() bool
	releaseQueued bool  // handed to the session for release, or gone with it
	releaseErr    error // set before released is closed

	work struct {
		sync.Mutex
		guards int
		body   bool // the function of Run, or the holder of a Campaign
		closed bool // no new guards
	}
}

// termEnd is why a term is given up, in whose favour, and who asked for it.
type termEnd struct {
	reason EndReason
	cause  error
	target uuid.UUID
	by     string
}

// Role returns the role.
func (t *Term) Role() Role { return t.election.role }

// Number returns the term's number: the fencing token. It is larger than that
// of every term of the role before, and at least the milliseconds since 1970 on
// the database's clock when the term began. It is not a count.
func (t *Term) Number() int64 { return t.number }

// NodeID returns the id of the node whose term it is.
func (t *Term) NodeID() uuid.UUID { return t.election.node.id }

// Backend returns the backend that granted the term.
func (t *Term) Backend() Backend { return t.election.node.backend }

// AcquiredAt returns when the term began, by the database's clock.
func (t *Term) AcquiredAt() time.Time { return t.acquiredAt }

// PrecedingVacancy returns for how long nobody led the role before this term, or a
// negative duration if that is not known.
func (t *Term) PrecedingVacancy() time.Duration { return t.precedingVacancy }

// Context returns the term's context. It is cancelled when trust in the term
// ends, before anyone else can lead; context.Cause says why and matches
// [ErrTermEnded].
func (t *Term) Context() context.Context { return t.ctx }

// Stopping returns a channel that is closed when the term was asked to end:
// work in flight may finish, and is still trusted, for up to
// [Config].StopTimeout; no new work should be taken. Work that never calls
// Stopping has its context cancelled at once instead, since it would not notice
// anything else.
func (t *Term) Stopping() <-chan struct{} {
	t.usesStopping.Store(true)
	return t.stopping
}

// Valid reports whether this node may trust the term at this moment. It takes
// no lock, allocates nothing and asks nobody.
func (t *Term) Valid() bool {
	return !t.ended.Load() && t.session.trust.valid()
}

// Remaining returns for how long the term may be trusted if no further
// heartbeat is acknowledged; 0 when it has ended.
func (t *Term) Remaining() time.Duration {
	if t.ended.Load() {
		return 0
	}
	return t.session.trust.remaining(math.MaxInt64)
}

// LockConn returns the network connection that keeps this term's lock, or nil if
// no connection does, as with leases. While any process has a duplicate of its
// descriptor open, the server keeps the session and the lock even if this
// process dies, for at most one lease after its last heartbeat: whoever must
// finish something before others may lead holds one. The connection stays the
// session's: make the duplicate within Control, read and write nothing, and do
// not change its blocking mode, as [os.File.Fd] would. It may be called at any
// time; after the session has ended, Control fails.
func (t *Term) LockConn() (syscall.RawConn, error) {
	if anchored, ok := t.session.conn.(LockConnProvider); ok {
		return anchored.LockConn()
	}
	return nil, nil
}

// Resign gives the term up and waits until the role is free. For a term from
// [Election.Campaign] it also says that the work under it has returned: call it
// exactly once for each, also when the term was lost. From within the function
// of [Election.Run], return Done or an error instead: Resign would wait for
// that function.
//
// If the context ends first, it returns an error that matches ErrShutdown; the
// resignation goes on.
func (t *Term) Resign(ctx context.Context) error { return t.election.resign(ctx, t) }

// Guard keeps one piece of work within a term: while it is held, the role is
// not released. Obtain it with [Term.Guard] or [Election.Guard] and call
// Release when the work has returned.
type Guard struct {
	term *Term
	once sync.Once
}

// Guard registers a piece of work with the term. It returns an error that
// matches ErrNotLeader if the term is not trusted or was asked to end.
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

// Valid reports whether the guard's term may still be trusted.
func (g *Guard) Valid() bool { return g.term.Valid() }

// Done says that the work has returned. Only the first call counts.
func (g *Guard) Done() {
	g.once.Do(func() {
		g.term.work.Lock()
		g.term.work.guards--
		last := g.term.work.guards == 0
		g.term.work.Unlock()
		if last {
			g.term.advance()
		}
	})
}

// mainReturned says that the function of Run, or the holder of a Campaign, is done.
func (t *Term) mainReturned() {
	t.clearMain()
	t.advance()
}

func (t *Term) clearMain() {
	t.work.Lock()
	defer t.work.Unlock()
	t.work.body = false
}

// workState reports whether work has not returned, and whether it is work that
// may finish, until StopTimeout, after the term was asked to end.
func (t *Term) workState() (running, graceful bool) {
	t.work.Lock()
	defer t.work.Unlock()
	running = t.work.guards > 0 || t.work.body
	graceful = t.work.guards > 0 || t.work.body && t.usesStopping.Load()
	return running, graceful
}

// advance moves the end of the term along after work has returned.
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
	t.stopRequested, t.plannedEnd = true, why
	t.work.Lock()
	t.work.closed = true
	t.work.Unlock()
	close(t.stopping)
	n := t.election.node
	t.stopTimer = n.clock.AfterFunc(n.cfg.StopTimeout, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !t.releaseQueued {
			n.log.Warn("work in flight did not finish in time: its context is cancelled",
				"role", t.Role().Name(), "term", t.number, "stop_timeout", n.cfg.StopTimeout)
			t.endLocked(t.plannedEnd.cause)
		}
	})
	t.advanceLocked()
}

// endLocked ends the term: trust ends at once, the rest follows when the work has
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
	t.work.Unlock()
	t.cancel(cause)
	t.session.trust.remove(t)
}

// advanceLocked takes the steps of the end of a term whose time has come: trust
// ends, the context is canceled, the work returns, the lock is released
// (Invariant 4). It is called when one of them may have become possible.
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
