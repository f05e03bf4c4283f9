package tenure

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/preference"
	"github.com/exactly-one/tenure/internal/sentinel"
)

// Election is a node's candidacy for one role. Obtain it from [Node.Election] and use it
// in one of three ways: Run for many terms, Campaign for one term, or Start and Shutdown
// with callbacks. It is safe for concurrent use.
type Election struct {
	node *Node
	role Role
	cfg  *ElectionConfig // the elections with default settings share one

	group *group // the elections under one limit, or nil

	current atomic.Pointer[Term] // the term that this node trusts, or nil
	state   atomic.Uint32        // written under Node.mu

	// Guarded by Node.mu.
	mode           mode
	trying         bool            // TryAcquire started it, and stops it if the attempt fails
	steppingDown   bool            // the release in progress is a step-down
	stopping       bool            // stop when the release is done; or a stop came before the first start
	runNumber      uint64          // counts the starts
	valuesContext  context.Context // provides the values of the terms' contexts
	terms          chan *Term      // of Run and Campaign: terms with work that counts as running
	campaigns      []*electionRun  // waiting callers of Campaign, the next one first
	term           *Term           // the last term, until its work has returned and its lock is released or lost
	err            error           // why it stopped without a request
	changed        chan struct{}   // closed at the next change
	lostTerm       *Term           // while Reconnecting
	lostCause      error           // while Reconnecting
	stopGraceTimer func() bool
	detachContext  func() bool // from the context given to Start
	attempt        attempt
	takeOver       takeOver
	polledUntil    time.Duration // when a reservation that began at the last TryAcquire ends
	counters       electionCounters
	forgotten      bool

	events eventQueue
}

// mode is how an election was started.
type mode uint8

const (
	modeNone mode = iota
	modeStart
	modeRun
	modeCampaign
	modeTry // modeStart, for TryAcquire
)

// electionRun is one run of an election, from start to stop. For Run and
// Campaign it has a channel of terms.
type electionRun struct {
	number uint64
	terms  chan *Term
}

// attempt is the state of an election's attempts to acquire the role.
type attempt struct {
	nextAt       time.Duration // when the next attempt is due, on the monotonic clock
	notBefore    time.Duration // no attempt before: work failed
	yieldUntil   time.Duration // until then the role is left to others while its latest term is yieldTerm
	yieldTerm    int64         // the term that the node gave up last
	fencedSince  time.Duration // start of the wait for fenced transactions
	quickRetries int8          // quick retries left after a notification
	inFlight     bool          // in a call of TryAcquire
	pending      bool          // the lock is held, the term cannot begin yet
	unlocking    bool          // a lock without a term is being released
	sameCause    bool          // the last error had the same cause as the one before

	cycleFailures int           // failed attempts since the last term or start
	firstFailure  time.Duration // when the first of them failed, on the monotonic clock
	cause         string        // root cause of the last database error, until an attempt has another outcome
	totalFailures uint64        // failed attempts since Open
	err           error         // of the last failed attempt
}

// takeOver is an election's knowledge of a less preferred leader.
type takeOver struct {
	session *session      // since it has been less preferred without interruption; nil if it is not
	term    int64         // of the leader
	since   time.Duration // on the monotonic clock
	asked   int64         // the latest term whose leader was asked to hand over
	damping damping       // used if the election has no group

	disputes map[uuid.UUID]*dispute // by node that took over from this one
}

// dispute remembers a take-over by another node.
type dispute struct {
	own      preference.Score // when the role was lost
	other    preference.Score // when the two were compared for the first time after that
	compared bool
}

// damping is how long a node waits before it asks for a role, beyond TakeOverAfter.
type damping struct {
	wait time.Duration // 0: TakeOverAfter
}

// Role returns the role.
func (e *Election) Role() Role { return e.role }

// Node returns the election's node.
func (e *Election) Node() *Node { return e.node }

// State returns the state. Use IsLeader to find out whether this node leads: a
// term can end a moment before the state changes.
func (e *Election) State() State { return State(e.state.Load()) }

// IsLeader reports whether this node has a valid term of the role at this
// moment. It uses the node's clocks only: it takes no lock, does not allocate
// and does not query the database.
func (e *Election) IsLeader() bool {
	term := e.current.Load()
	return term != nil && term.Valid()
}

// Term returns the valid term, or nil if this node does not lead.
func (e *Election) Term() *Term {
	if term := e.current.Load(); term != nil && term.Valid() {
		return term
	}
	return nil
}

// Leader reads the leader of the role from the database. It returns ErrNoLeader if there
// is none.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	leaders, err := e.node.backend.Leaders(ctx, e.role.Name())
	if err != nil {
		return Leader{}, fmt.Errorf("look up the leader of %s: %w", e.role, err)
	}
	if len(leaders) == 0 {
		return Leader{}, fmt.Errorf("%w: %s", ErrNoLeader, e.role)
	}
	return leaders[0], nil
}

// LeaderHealthy reports whether the role has a leader with an unexpired lease.
func (e *Election) LeaderHealthy(ctx context.Context) (bool, error) {
	leader, err := e.Leader(ctx)
	if errors.Is(err, ErrNoLeader) {
		return false, nil
	}
	return err == nil && leader.Valid(), err
}

// Refresh sends a heartbeat and waits for its acknowledgment. It returns
// ErrNotLeader if this node does not lead afterwards.
func (e *Election) Refresh(ctx context.Context) error {
	if err := e.node.refresh(ctx); err != nil {
		return err
	}
	if !e.IsLeader() {
		return ErrNotLeader
	}
	return nil
}

// dueAt returns when the next attempt is due, on the monotonic clock.
func (a *attempt) dueAt() time.Duration { return max(a.nextAt, a.notBefore) }

// updateCause records a database error and reports whether its root cause is new. Failures
// for the same cause emit one event.
func (a *attempt) updateCause(err error) bool {
	cause := rootCause(err)
	a.sameCause = cause == a.cause
	a.cause = cause
	return !a.sameCause
}

// rootCause returns the text of the innermost error, because the outer ones
// differ from attempt to attempt.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			inner = several.Unwrap()[len(several.Unwrap())-1]
		}
		if inner == nil || sentinel.Is(err) {
			return err.Error()
		}
		err = inner
	}
}

// mayHoldLock reports whether the session may hold the lock without a term, now
// or after the current call.
func (a *attempt) mayHoldLock() bool { return a.inFlight || a.pending || a.unlocking }
