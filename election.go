package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
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

// Guard registers a piece of work with the current term; see [Term.Guard].
func (e *Election) Guard() (*Guard, error) {
	if term := e.current.Load(); term != nil {
		return term.Guard()
	}
	return nil, ErrNotLeader
}

// Start begins to campaign for the role. It is idempotent. When ctx ends, the
// election shuts down as Shutdown does; ctx also provides the values of the
// terms' contexts. If the election is shutting down, Start first waits for the
// end of the shutdown. It returns ErrAlreadyStarted if Run or Campaign started
// the election, and ErrClosed if the node is closed.
func (e *Election) Start(ctx context.Context) error {
	_, err := e.start(ctx, modeStart)
	return err
}

// electionRun is one run of an election, from start to stop. For Run and
// Campaign it has a channel of terms.
type electionRun struct {
	number uint64
	terms  chan *Term
}

func (e *Election) start(ctx context.Context, by mode) (electionRun, error) {
	if ctx.Err() != nil {
		return electionRun{}, context.Cause(ctx)
	}
	// The context is user code, so it is called without n.mu.
	var run electionRun
	detach := context.AfterFunc(ctx, func() { e.stopRun(ctx, &run) })
	err := e.startWhenStopped(ctx, by, detach, &run)
	switch {
	case err != nil || run.number == 0:
		detach()
	case ctx.Err() != nil:
		e.stopRun(ctx, &run) // ctx ended before the start
	}
	return run, err
}

// stopRun stops a run after the end of its context.
func (e *Election) stopRun(ctx context.Context, run *electionRun) {
	cause := withDetail(ErrStopping, context.Cause(ctx))
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	if run.number == e.runNumber && run.number > 0 {
		e.requestStopLocked(endreason.Shutdown, cause)
	}
}

// startWhenStopped starts the election once its last run has ended. If the
// election is started already, run stays empty.
func (e *Election) startWhenStopped(ctx context.Context, by mode, detach func() bool, run *electionRun) error {
	if by == modeCampaign {
		defer e.queueCampaign(run)()
	}
	for {
		s := start{election: e, ctx: ctx, by: by, detach: detach, run: run}
		err := e.waitFor(ctx, s.readyLocked)
		if !s.unresigned {
			return cmp.Or(s.refused, err)
		}
		if err := e.awaitResignation(ctx); err != nil {
			return err
		}
	}
}

// start is an attempt to start an election.
type start struct {
	election *Election
	ctx      context.Context
	by       mode
	detach   func() bool
	run      *electionRun

	refused    error
	unresigned bool // work under a term that has ended has not returned
}

// readyLocked starts the election if possible now. It reports whether the attempt need not
// wait.
func (s *start) readyLocked() bool {
	e := s.election
	switch {
	case e.node.closing:
		s.refused = ErrClosed
	case e.forgotten:
		s.refused = fmt.Errorf("%w: it was forgotten", ErrStopped)
	case s.by == modeCampaign && e.mustQueueLocked(s.run):
		return false
	case e.mode != modeNone && !e.stopping && e.State() != Stopped:
		s.joinLocked()
	case s.by == modeCampaign && e.workRemainsLocked():
		s.unresigned = true
	case e.State() == Stopped && !e.attempt.mayHoldLock() && (s.by != modeCampaign || e.term == nil):
		e.startLocked(s.ctx, s.by, s.detach)
		*s.run = electionRun{e.runNumber, e.terms}
	default:
		return false
	}
	return true
}

// joinLocked is for an election already started.
func (s *start) joinLocked() {
	e := s.election
	switch {
	case e.mode != modeStart || s.by != modeStart && s.by != modeTry:
		s.refused = ErrAlreadyStarted
	case e.trying && s.by == modeStart: // the run is the caller's from now on
		e.trying, e.valuesContext, e.detachContext = false, context.WithoutCancel(s.ctx), s.detach
		*s.run = electionRun{number: e.runNumber}
	}
}

// startLocked starts the election. It uses only the values of ctx.
func (e *Election) startLocked(ctx context.Context, by mode, detach func() bool) {
	if e.trying = by == modeTry; e.trying {
		by = modeStart
	}
	e.mode, e.valuesContext, e.stopping, e.err = by, context.WithoutCancel(ctx), false, nil
	e.runNumber++
	e.terms = nil
	if by != modeStart {
		e.terms = make(chan *Term, 1)
	}
	e.steppingDown = false
	e.stepLocked(fsm.Start, nil, nil)
	e.detachContext = detach
}

// Shutdown stops campaigning. It asks work in flight to end, releases the role, and
// returns when the election is Stopped and all work has returned. It is idempotent. If ctx
// ends first, the error matches ErrShutdown, and the shutdown continues.
func (e *Election) Shutdown(ctx context.Context) error {
	e.node.mu.Lock()
	e.requestStopLocked(endreason.Shutdown, ErrStopping)
	run := e.runNumber
	e.node.mu.Unlock()
	return e.awaitFinished(ctx, run)
}

// Forget removes the election from its node, which then keeps nothing of it. Use it on a
// node that leads many roles, each for a short time. The election must have stopped, and
// the work of its last term must have returned: otherwise Forget changes nothing, and the
// error matches ErrAlreadyStarted. It is idempotent and does not wait.
//
// A forgotten election cannot be started: the errors of Start, Run, Campaign and
// TryAcquire match ErrStopped. [Node.Election] makes a new one for the role. Until the
// session ends, it remembers the names of the roles the node has led. The database keeps a
// row for each role, with the number of its last term.
func (e *Election) Forget() error {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case e.forgotten:
		return nil
	case e.State() != Stopped || e.term != nil || e.attempt.mayHoldLock():
		return fmt.Errorf("%w: forget %s: shut the election down first", ErrAlreadyStarted, e.role)
	}
	e.forgotten = true
	e.requestStopLocked(endreason.Shutdown, ErrStopping) // ends WaitForLeadership
	delete(n.elections, e.role.Name())
	n.leaveGroupLocked(e)
	return nil
}

// Participate calls body between Start and Shutdown. It returns the errors of body and of
// Shutdown, joined. The shutdown has StopTimeout plus one lease, even if ctx has ended,
// and also follows a panic of body.
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

// WaitForLeadership waits until this node leads and returns the term. It also waits for
// the first start, for example by Run in another goroutine. It returns the context's error
// if ctx ends first. It returns ErrStopped if the election has stopped or stops, or if
// Shutdown or Node.Close comes before the first start.
func (e *Election) WaitForLeadership(ctx context.Context) (*Term, error) {
	var (
		term    *Term
		stopped error
	)
	err := e.waitFor(ctx, func() bool {
		term = e.Term()
		if term == nil && e.State() == Stopped && (e.runNumber > 0 || e.stopping) {
			stopped = e.stopErrorLocked()
		}
		return term != nil || stopped != nil
	})
	return term, cmp.Or(stopped, err)
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

// StepDown gives up the role and stays a candidate, unless NoReacquire is set.
// It asks work in flight to end, and returns when the role is free. It returns
// ErrNotLeader if this node does not lead. If ctx ends before the work has
// returned, the error matches ErrWorkRunning; the role stays locked and is
// released when the work returns. The record of the term says resigned; use
// HandleRequest to record a requester.
func (e *Election) StepDown(ctx context.Context) error {
	return e.stepDown(ctx, 0, termEnd{reason: endreason.Resigned, cause: ErrSteppedDown})
}

// HandOver asks the node target whether it campaigns for the role, steps down, and
// reserves the role for the target for one CheckInterval. If the target does not acquire
// the role in this time, any candidate can. The term continues if the target does not
// campaign or does not answer (ErrNotActive), is not a live node (ErrUnknownNode), is this
// node or uuid.Nil, or leads GroupLimit roles of the election's group (ErrInvalidConfig).
func (e *Election) HandOver(ctx context.Context, target uuid.UUID) error {
	if err := e.offer(ctx, target); err != nil {
		return fmt.Errorf("hand over %s: %w", e.role, err)
	}
	return e.stepDown(ctx, 0, termEnd{reason: endreason.HandedOver, cause: ErrHandedOver, target: target})
}

// offer asks the target of a hand-over whether it campaigns for the role: otherwise the
// role would have no leader until the reservation ends. The stop of the node ends it.
func (e *Election) offer(ctx context.Context, target uuid.UUID) error {
	n := e.node
	if err := n.validateTarget(target); err != nil {
		return err
	}
	if e.current.Load() == nil {
		return nil // stepDown returns ErrNotLeader
	}
	if err := e.validateRoom(ctx, target); err != nil {
		return err // the target would decline without this reason
	}
	err := n.backend.Request(ctx, Request{Kind: RequestHandOver, Offer: true, Role: e.role.Name(), Target: target, By: n.cfg.Name})
	if errors.Is(err, ErrNoLeader) {
		return nil // stepDown finds out whether this node still leads
	}
	return err
}

// HandleRequest steps down or hands over as request says, and records
// request.By as the requester. request.Role may be empty. It does not ask the target
// of a hand-over whether it campaigns: [Backend].Request does, before it records the
// request. A request of another kind, or for another role, matches ErrInvalidConfig. If
// request.Term is not the present term, it returns ErrNotLeader.
func (e *Election) HandleRequest(ctx context.Context, request Request) error {
	if request.Role != "" && request.Role != e.role.Name() {
		return fmt.Errorf("%w: the election for %[3]q cannot handle a request for %[2]q", ErrInvalidConfig, request.Role, e.role.Name())
	}
	switch request.Kind {
	case RequestStepDown, RequestHandOver:
		return e.stepDown(ctx, request.Term, request.termEnd())
	default:
		return fmt.Errorf("%w: an election cannot handle a request of kind %q", ErrInvalidConfig, request.Kind)
	}
}

// ForceStepDown is StepDown, except that it aborts the node's session if ctx ends first.
// The abort releases the role although its work may still be running, and ends every other
// term of the node.
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
	n.log.Warn("aborting the session to force a step-down: all terms of this node end", "role", e.role.Name())
	s := e.term.session
	s.endLocked(fmt.Errorf("%w: forced", ErrSteppedDown))
	n.mu.Unlock()
	s.forcesClose()
	s.conn.Abort()
	return nil
}

// stepDown ends the present term. If number is not 0, it ends only the term with this
// number.
func (e *Election) stepDown(ctx context.Context, number int64, why termEnd) error {
	n := e.node
	if why.reason == endreason.HandedOver {
		err := n.validateTarget(why.target)
		if err == nil {
			err = e.validateRoom(ctx, why.target)
		}
		if err != nil {
			return fmt.Errorf("hand over %s: %w", e.role, err)
		}
	}
	n.mu.Lock()
	term := e.term
	if term == nil || number != 0 && number != term.Number() || !term.stopRequested && e.State() != Leading {
		n.mu.Unlock()
		return ErrNotLeader
	}
	e.beginStepDownLocked(why)
	n.mu.Unlock()
	return e.awaitRelease(ctx, term, "step down from")
}

// validateTarget refuses impossible targets of a hand-over.
func (n *Node) validateTarget(target uuid.UUID) error {
	switch target {
	case n.id:
		return fmt.Errorf("%w: the target is this node", ErrInvalidConfig)
	case uuid.Nil:
		return fmt.Errorf("%w: no target is given: name a node, or step down", ErrInvalidConfig)
	default:
		return nil
	}
}

// beginStepDownLocked starts the release of the current term, if this node leads. If trust
// has ended, the term is lost instead.
func (e *Election) beginStepDownLocked(why termEnd) {
	if e.State() != Leading || !e.term.Valid() {
		return
	}
	e.steppingDown = true
	e.stepLocked(fsm.ReleaseRequested, e.term, nil)
	e.term.stopLocked(why)
}

// requestStopLocked stops the election, after its term if it has one. If trust has ended,
// the term is lost first.
func (e *Election) requestStopLocked(reason EndReason, cause error) {
	e.stopAfterLocked(termEnd{reason: reason, cause: cause})
}

// stopAfterLocked stops the election. why is for its term, if it has one.
func (e *Election) stopAfterLocked(why termEnd) {
	if e.State() == Leading && !e.term.Valid() {
		e.term.session.endLocked(ErrTrustExpired)
	}
	switch e.State() {
	case Stopped:
		if e.runNumber == 0 { // ends WaitForLeadership
			e.stopping = true
			e.wakeLocked()
		}
	case Leading:
		e.stopping = true
		e.stepLocked(fsm.StopRequested, e.term, nil)
		e.term.stopLocked(why)
	case Releasing:
		e.stopping, e.steppingDown = true, false
	default:
		e.stopping = true
		e.stepLocked(fsm.StopRequested, nil, nil)
	}
}
