package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/fsm"
)

// Election is a node's candidacy for one role. Obtain it from [Node.Election]
// and drive it in one of three ways: Run, which leads again and again;
// Campaign, for one term by hand; or Start and Shutdown with callbacks. It is
// safe for concurrent use.
type Election struct {
	node *Node
	role Role
	cfg  ElectionConfig

	current atomic.Pointer[Term] // the term that this node may trust, if any
	state   atomic.Uint32        // written under Node.mu

	// Guarded by Node.mu.
	mode      mode
	runNumber      uint64          // counts the starts
	valuesContext    context.Context // whose values the terms' contexts have
	terms     chan *Term      // of Run and Campaign: terms with the work already counted
	term      *Term           // the last term until its work has returned and its lock is gone
	steppingDown  bool            // the release in progress is a step-down
	stopping  bool            // stop when the release is done
	err       error           // why it stopped by itself
	changed   chan struct{}   // closed at the next change
	lostTerm  *Term           // while Reconnecting
	lostCause error           // while Reconnecting
	stopGraceTimer  func() bool
	detachContext    func() bool // from the context given to Start
	attempt   attempt
	counters     electionCounters

	callbacks       []func(Event)
	queue           []delivery
	delivering      bool
	deliveringSince time.Duration // while delivering: when the event being told was posted, on the monotonic clock
}

// driver says who started an election.
type mode uint8

const (
	modeNone mode = iota
	modeStart
	modeRun
	modeCampaign
)

// Role returns the role.
func (e *Election) Role() Role { return e.role }

// Node returns the node that stands.
func (e *Election) Node() *Node { return e.node }

// State returns the state. Whether this node leads is decided by IsLeader: a
// term can end a moment before the state follows.
func (e *Election) State() State { return State(e.state.Load()) }

// IsLeader reports whether this node holds a term of the role that it may trust
// at this moment. The answer comes from the node's own clocks: no lock, no
// allocation, no question to the database.
func (e *Election) IsLeader() bool {
	term := e.current.Load()
	return term != nil && term.Valid()
}

// Term returns the present term, or nil if this node does not lead.
func (e *Election) Term() *Term {
	if term := e.current.Load(); term != nil && term.Valid() {
		return term
	}
	return nil
}

// Guard registers a piece of work with the present term; see [Term.Guard].
func (e *Election) Guard() (*Guard, error) {
	if term := e.current.Load(); term != nil {
		return term.Guard()
	}
	return nil, ErrNotLeader
}

// Start begins to stand for the role. It is idempotent. When the context ends,
// the election shuts down as by Shutdown; its values are those of the terms'
// contexts. If the election is being shut down, Start first waits for the end
// of that. It returns ErrAlreadyStarted if Run or Campaign drive the election, and
// ErrClosed if the node is closed.
func (e *Election) Start(ctx context.Context) error {
	_, err := e.start(ctx, modeStart)
	return err
}

// drive is one life of an election that Run or Campaign drive, from start to
// stop.
type electionRun struct {
	number  uint64
	terms chan *Term
}

func (e *Election) start(ctx context.Context, by mode) (electionRun, error) {
	if ctx.Err() != nil {
		return electionRun{}, context.Cause(ctx)
	}
	// The context is the program's, so it is asked without the node's mutex.
	var begun electionRun
	unhook := context.AfterFunc(ctx, func() { e.stopRun(ctx, &begun) })
	err := e.startWhenStopped(ctx, by, unhook, &begun)
	switch {
	case err != nil || begun.number == 0:
		unhook()
	case ctx.Err() != nil:
		e.stopRun(ctx, &begun) // it ended before the start
	}
	return begun, err
}

// stopRun stops a life of the election whose context has ended.
func (e *Election) stopRun(ctx context.Context, begun *electionRun) {
	cause := withDetail(ErrStopping, context.Cause(ctx))
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	if begun.number == e.runNumber && begun.number > 0 {
		e.requestStopLocked(EndShutdown, cause)
	}
}

// startWhenStopped waits until the election can start and starts it. An election that
// is started already leaves begun empty.
func (e *Election) startWhenStopped(ctx context.Context, by mode, unhook func() bool, begun *electionRun) error {
	var refused error
	err := e.waitFor(ctx, func() bool {
		switch {
		case e.node.closing:
			refused = ErrClosed
			return true
		case e.mode != modeNone && !e.stopping && e.State() != Stopped:
			if e.mode != modeStart || by != modeStart {
				refused = ErrAlreadyStarted
			}
			return true
		case e.State() == Stopped && !e.attempt.mayHoldLock() && (by != modeCampaign || e.term == nil):
			e.startLocked(ctx, by, unhook)
			*begun = electionRun{e.runNumber, e.terms}
			return true
		}
		return false
	})
	return cmp.Or(refused, err)
}

// startLocked starts the election. The context is asked for its values only.
func (e *Election) startLocked(ctx context.Context, by mode, unhook func() bool) {
	e.mode, e.valuesContext, e.stopping, e.err = by, context.WithoutCancel(ctx), false, nil
	e.runNumber++
	e.terms = nil
	if by != modeStart {
		e.terms = make(chan *Term, 1)
	}
	e.steppingDown = false
	e.stepLocked(fsm.Start, nil, nil)
	e.detachContext = unhook
}

// Shutdown stops standing: work in flight is asked to end, the role is
// released, and the election is Stopped. It returns when that is done and all
// work has returned. It is idempotent. If the context ends first, it returns an
// error that matches ErrShutdown; the shutdown goes on.
func (e *Election) Shutdown(ctx context.Context) error {
	e.node.mu.Lock()
	e.requestStopLocked(EndShutdown, ErrStopping)
	life := e.runNumber
	e.node.mu.Unlock()
	return e.awaitFinished(ctx, life)
}

// Participate runs body between Start and Shutdown. It returns the error of
// body, joined with that of Shutdown, which gets at most StopTimeout plus one
// lease even if the context has ended. A panic of body shuts down too.
func (e *Election) Participate(ctx context.Context, body func(context.Context) error) (err error) {
	if err := e.Start(ctx); err != nil {
		return err
	}
	defer func() {
		limit := e.node.cfg.StopTimeout + e.node.cfg.Lease
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err = errors.Join(err, e.Shutdown(stop))
	}()
	return body(ctx)
}

// WaitForLeadership waits until this node leads and returns the term. It
// returns the context's error when that ends first, and ErrStopped if the
// election is stopped or stops.
func (e *Election) WaitForLeadership(ctx context.Context) (*Term, error) {
	var (
		term    *Term
		stopped error
	)
	err := e.waitFor(ctx, func() bool {
		term = e.Term()
		if term == nil && e.State() == Stopped {
			stopped = e.stopErrorLocked()
		}
		return term != nil || stopped != nil
	})
	return term, cmp.Or(stopped, err)
}

// Leader looks up who leads the role. It returns ErrNoLeader if nobody does.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	leaders, err := e.node.backend.Leaders(ctx, e.role.Name())
	if err != nil {
		return Leader{}, fmt.Errorf("looking up the leader of %s: %w", e.role, err)
	}
	if len(leaders) == 0 {
		return Leader{}, fmt.Errorf("%w: %s", ErrNoLeader, e.role)
	}
	return leaders[0], nil
}

// LeaderHealthy reports whether somebody leads the role with a lease that still
// runs.
func (e *Election) LeaderHealthy(ctx context.Context) (bool, error) {
	leader, err := e.Leader(ctx)
	if errors.Is(err, ErrNoLeader) {
		return false, nil
	}
	return err == nil && leader.Valid(), err
}

// TryAcquire makes one attempt to lead now and returns the term. It returns an
// error that matches ErrHeld if another leads. An election that was stopped is
// started for it, as by Start with the context's values only, and stopped again
// if the attempt fails.
func (e *Election) TryAcquire(ctx context.Context) (*Term, error) {
	n := e.node
	n.mu.Lock()
	started := e.State() == Stopped
	n.mu.Unlock()
	if started {
		if err := e.Start(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	term, err := e.tryOnce(ctx)
	if err != nil && started {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.StopTimeout)
		defer cancel()
		err = errors.Join(err, e.Shutdown(stop))
	}
	return term, err
}

func (e *Election) tryOnce(ctx context.Context) (*Term, error) {
	n := e.node
	n.mu.Lock()
	failures := e.attempt.totalFailures
	e.attempt.nextAt, e.attempt.notBefore = 0, 0
	n.wakeSessionLocked()
	n.mu.Unlock()
	var (
		term   *Term
		failed error
	)
	err := e.waitFor(ctx, func() bool {
		term = e.Term()
		switch {
		case term != nil:
		case e.attempt.totalFailures != failures && e.attempt.err != nil:
			failed = e.attempt.err
		case e.State() == Stopped:
			failed = e.stopErrorLocked()
		case !n.mayCampaignLocked():
			failed = ErrNotActive
		}
		return term != nil || failed != nil
	})
	return term, cmp.Or(failed, err)
}

// Refresh sends a heartbeat now and waits for its acknowledgment. It returns
// ErrNotLeader if this node does not lead then.
func (e *Election) Refresh(ctx context.Context) error {
	if err := e.node.refresh(ctx); err != nil {
		return err
	}
	if !e.IsLeader() {
		return ErrNotLeader
	}
	return nil
}

// StepDown gives the role up without stopping: work in flight is asked to end,
// the role is released, and unless NoReacquire is set the election stands
// again. It returns when the role is free, and ErrNotLeader if this node does
// not lead. If the context ends before the work has returned, the role stays
// locked, the error matches ErrWorkRunning, and the release follows when the
// work returns. The record of the term says resigned: it is the leader's own
// program that calls; see HandleRequest for others.
func (e *Election) StepDown(ctx context.Context) error {
	return e.stepDown(ctx, termEnd{reason: EndResigned, cause: ErrSteppedDown})
}

// HandOver is StepDown in favor of another node: the role is reserved for it
// for one CheckInterval. A target that does not take it in that time loses the
// privilege. If the target is this node itself, the error matches
// ErrInvalidConfig and the term goes on.
func (e *Election) HandOver(ctx context.Context, target uuid.UUID) error {
	return e.stepDown(ctx, termEnd{reason: EndHandedOver, cause: ErrHandedOver, target: target})
}

// HandleRequest is StepDown or HandOver as somebody asks: the record of the term says
// who did, as it does for a request that comes through the database. The role of
// the request may be left out. A request for something else, or for another
// role, matches ErrInvalidConfig.
func (e *Election) HandleRequest(ctx context.Context, request Request) error {
	if request.Role != "" && request.Role != e.role.Name() {
		return fmt.Errorf("%w: a request for %q cannot be done by the election for %q", ErrInvalidConfig, request.Role, e.role.Name())
	}
	switch request.Kind {
	case RequestStepDown, RequestHandOver:
		return e.stepDown(ctx, request.termEnd())
	default:
		return fmt.Errorf("%w: an election can step down or hand over, and was asked to %q", ErrInvalidConfig, request.Kind)
	}
}

// ForceStepDown is StepDown, but when the context ends first it cuts the node's
// session, which frees the role although its work may still run, and ends every
// other term of the node too.
func (e *Election) ForceStepDown(ctx context.Context) error {
	err := e.StepDown(ctx)
	if err == nil || !errors.Is(err, ErrShutdown) {
		return err
	}
	n := e.node
	n.mu.Lock()
	if e.term == nil {
		n.mu.Unlock()
		return nil
	}
	n.log.Warn("cutting the session to force a step-down; all terms of this node end", "role", e.role.Name())
	s := e.term.session
	s.endLocked(fmt.Errorf("%w: forced", ErrSteppedDown))
	n.mu.Unlock()
	s.conn.Abort()
	return nil
}

func (e *Election) stepDown(ctx context.Context, why termEnd) error {
	n := e.node
	if why.reason == EndHandedOver && why.target == n.id {
		return fmt.Errorf("%w: the node cannot hand %s over to itself", ErrInvalidConfig, e.role)
	}
	n.mu.Lock()
	term := e.term
	if term == nil || !term.stopRequested && e.State() != Leading {
		n.mu.Unlock()
		return ErrNotLeader
	}
	e.beginStepDownLocked(why)
	n.mu.Unlock()
	return e.awaitRelease(ctx, term, "stepping down from")
}

// beginStepDownLocked starts the release of the present term, once.
func (e *Election) beginStepDownLocked(why termEnd) {
	if e.State() != Leading {
		return
	}
	e.steppingDown = true
	e.stepLocked(fsm.ReleaseRequested, e.term, nil)
	e.term.stopLocked(why)
}

// requestStopLocked makes the election stop, once.
func (e *Election) requestStopLocked(reason EndReason, cause error) {
	switch e.State() {
	case Stopped:
	case Leading:
		e.stopping = true
		e.stepLocked(fsm.StopRequested, e.term, nil)
		e.term.stopLocked(termEnd{reason: reason, cause: cause})
	case Releasing:
		e.stopping, e.steppingDown = true, false
	default:
		e.stopping = true
		e.stepLocked(fsm.StopRequested, nil, nil)
	}
}

// withDetail adds what is known to a cause.
func withDetail(cause, detail error) error {
	switch {
	case detail == nil || errors.Is(cause, detail):
		return cause
	case errors.Is(detail, cause):
		return detail
	}
	return fmt.Errorf("%w: %w", cause, detail)
}
