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
