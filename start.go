package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
)

// Start begins to campaign for the role. It is idempotent. When ctx ends, the
// election shuts down as Shutdown does; ctx also provides the values of the
// terms' contexts. If the election is shutting down, Start first waits for the
// end of the shutdown. It returns ErrAlreadyStarted if Run or Campaign started
// the election, and ErrClosed if the node is closed.
func (e *Election) Start(ctx context.Context) error {
	_, err := e.start(ctx, modeStart)
	return err
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

// queueCampaign puts a caller of Campaign at the end of the queue. The result takes it
// out again.
func (e *Election) queueCampaign(run *electionRun) (leave func()) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.campaigns = append(e.campaigns, run)
	return func() {
		e.node.mu.Lock()
		defer e.node.mu.Unlock()
		e.campaigns = slices.DeleteFunc(e.campaigns, func(other *electionRun) bool { return other == run })
		e.wakeLocked()
	}
}

// mustQueueLocked reports whether other callers of Campaign come before one.
func (e *Election) mustQueueLocked(run *electionRun) bool {
	return e.campaigns[0] != run || e.mode == modeCampaign && e.State() != Stopped
}

// workRemainsLocked reports whether the election has stopped, but the work under its
// last term has not returned.
func (e *Election) workRemainsLocked() bool {
	if e.State() != Stopped || e.term == nil {
		return false
	}
	running, _ := e.term.workState()
	return running
}

// awaitResignation waits until the work of an ended term has returned.
func (e *Election) awaitResignation(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, e.node.cfg.StopTimeout)
	defer cancel()
	if err := e.waitFor(limited, func() bool { return e.node.closing || !e.workRemainsLocked() }); err != nil {
		return fmt.Errorf("%w: %w", ErrAlreadyStarted, e.unfinished("campaign for", err))
	}
	return nil
}
