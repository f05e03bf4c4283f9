package tenure

import (
	"context"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/retry"
)

// Work is what a leader does. Its context is canceled when trust in the term
// ends, before another node can lead; context.Cause returns the reason. Work
// should return soon after that: until then the role stays locked and this node
// does not campaign for it.
type Work func(ctx context.Context, term *Term) error

// Run campaigns for the role and calls work, in this goroutine, for each term.
// When ctx ends or the election is shut down, it resigns, waits until the role
// is free, and returns nil.
//
// If work returns during its term, the node gives up the role. After [Done],
// Run returns nil. After nil or any other error, which goes to the error
// callbacks, the node pauses before it campaigns again; the pause grows if this
// repeats.
//
// Run returns ErrAlreadyStarted if the election is already started, and an
// error that matches ErrStopped if the retry strategy gives up.
func (e *Election) Run(ctx context.Context, work Work) error {
	run, err := e.start(ctx, modeRun)
	if err != nil {
		return err
	}
	defer e.stopAndWait(run) // if work panics
	pause := retry.ExponentialBackoff{Base: e.node.cfg.CheckInterval, Max: 12 * e.node.cfg.CheckInterval}
	for early := 0; ; {
		term, err := e.nextTerm(run)
		if term == nil {
			return err
		}
		if !e.lead(term, work) {
			early = 0
			continue
		}
		early++
		delay, _ := pause.NextDelay(retry.Failure{Attempt: early})
		n := e.node
		n.mu.Lock()
		e.attempt.notBefore = n.clock.Now().Mono + delay
		n.mu.Unlock()
	}
}

// lead calls work for one term and reports whether work returned during its
// term.
func (e *Election) lead(term *Term, work Work) (early bool) {
	defer term.mainReturned()
	err := work(term.ctx, term)
	done := errors.Is(err, Done)
	var failed error
	if err != nil && !done && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrTermEnded) {
		failed = fmt.Errorf("work under term %d of %s: %w", term.number, e.role, err)
	}
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if done {
		e.requestStopLocked(endreason.Resigned, ErrResigned)
		return false
	}
	early = e.term == term && !term.stopRequested && !term.ended.Load()
	if failed != nil {
		n.log.Error("work failed", "role", e.role.Name(), "term", term.number, "error", err)
		e.postLocked(Event{Kind: EventError, Term: term, Err: failed})
	}
	if early {
		e.beginStepDownLocked(termEnd{reason: endreason.Resigned, cause: ErrResigned})
	}
	return early
}

// nextTerm waits for the next term of a run. It returns nil when the run has
// ended, with its work and locks.
func (e *Election) nextTerm(r electionRun) (term *Term, err error) {
	_ = e.waitFor(context.Background(), func() bool {
		if term = e.takeTermLocked(r); term != nil {
			return true
		}
		if !e.finishedLocked(r.number) {
			return false
		}
		if e.runNumber == r.number && e.err != nil {
			err = e.stopErrorLocked()
		}
		return true
	})
	return term, err
}

// takeTermLocked returns the next term of a run that is still valid, or nil. It
// records that the work of terms that have ended meanwhile has returned.
func (e *Election) takeTermLocked(r electionRun) *Term {
	for {
		select {
		case term := <-r.terms:
			if !term.stopRequested && !term.ended.Load() {
				return term
			}
			term.clearMain()
			term.advanceLocked()
		default:
			return nil
		}
	}
}

// stopAndWait stops a run and waits until the role is free.
func (e *Election) stopAndWait(r electionRun) {
	_ = e.waitFor(context.Background(), func() bool {
		if e.finishedLocked(r.number) {
			return true
		}
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
		return e.finishedLocked(r.number)
	})
}

// Campaign campaigns for the role until elected and returns the term. The
// caller works under the term's context and calls [Term.Resign] when the work
// has returned, even if the term was lost. The election stops after the term.
// Campaign returns the context's error if ctx ends first, ErrAlreadyStarted if
// the election is already started, and an error that matches ErrStopped if the
// retry strategy gives up or the election is shut down. Once it has returned a
// term, the end of ctx has no effect.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	run, err := e.start(ctx, modeCampaign)
	if err != nil {
		return nil, err
	}
	term, err := e.nextTerm(run)
	switch {
	case err != nil:
		return nil, err
	case term == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case term == nil:
		return nil, ErrStopped
	}
	e.node.mu.Lock()
	detach := e.detachContext
	e.node.mu.Unlock()
	if detach != nil {
		detach()
	}
	return term, nil
}

// resign gives up a term and waits until its lock is released or lost.
func (e *Election) resign(ctx context.Context, term *Term) error {
	n := e.node
	n.mu.Lock()
	campaign := e.mode == modeCampaign
	if e.term == term && !term.ended.Load() {
		if campaign {
			e.requestStopLocked(endreason.Resigned, ErrResigned)
		} else {
			e.beginStepDownLocked(termEnd{reason: endreason.Resigned, cause: ErrResigned})
		}
	}
	n.mu.Unlock()
	if term.campaign {
		term.mainReturned()
	}
	return e.awaitRelease(ctx, term, "resigning from")
}
