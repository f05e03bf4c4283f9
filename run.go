package tenure

import (
	"context"
	"errors"
	"fmt"
)

// Work is what a leader does. Its context is canceled when trust in the term
// ends, before anyone else can lead; context.Cause says why. It should return
// soon after: the role stays locked, and this node does not stand again, until
// it has.
type Work func(ctx context.Context, term *Term) error

// Run stands for the role, calls work in this goroutine for each term, and
// stands again after it, until the context ends or the election is shut down;
// then it resigns, waits until the role is free, and returns nil.
//
// If work returns while its term still stands, the role is given up. After
// [Done], Run returns nil; after any other error, which goes to the error
// callbacks, and after nil, the node lets the others go first and stands again,
// later and later if that repeats.
//
// Run returns ErrAlreadyStarted if the election is already driven otherwise, and an
// error that matches ErrStopped if the retry strategy gives up.
func (e *Election) Run(ctx context.Context, work Work) error {
	run, err := e.start(ctx, modeRun)
	if err != nil {
		return err
	}
	defer e.stopAndWait(run) // if work panics
	pause := ExponentialBackoff{Base: e.node.cfg.CheckInterval, Max: 12 * e.node.cfg.CheckInterval}
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
		delay, _ := pause.NextDelay(RetryContext{Attempt: early})
		n := e.node
		n.mu.Lock()
		e.attempt.notBefore = n.clock.Now().Mono + delay
		n.mu.Unlock()
	}
}

// lead does the work of one term and reports whether it returned early.
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
		e.requestStopLocked(EndResigned, ErrResigned)
		return false
	}
	early = e.term == term && !term.stopRequested && !term.ended.Load()
	if failed != nil {
		n.log.Error("work failed", "role", e.role.Name(), "term", term.number, "error", err)
		e.postLocked(Event{Kind: EventError, Term: term, Err: failed})
	}
	if early {
		e.beginStepDownLocked(termEnd{reason: EndResigned, cause: ErrResigned})
	}
	return early
}

// nextTerm waits for the next term of a run, or returns nil when the run has ended
// and nothing of it is left.
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

// takeTermLocked returns the term that a run has been given and that still goes on,
// or nil. The work of one that has ended by now counts as returned.
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

// stopAndWait stops a run that has not ended by itself and waits until the role is
// free.
func (e *Election) stopAndWait(r electionRun) {
	_ = e.waitFor(context.Background(), func() bool {
		if e.finishedLocked(r.number) {
			return true
		}
		e.requestStopLocked(EndShutdown, ErrStopping)
		return e.finishedLocked(r.number)
	})
}

// Campaign stands for the role until elected and returns the term. The caller
// works under its context and calls [Term.Resign] when the work has returned,
// whether the term still stands or not; the election is stopped after the term.
// It returns the context's error if that ends before, ErrAlreadyStarted if the
// election is driven otherwise, and an error that matches ErrStopped if the
// retry strategy gives up or the election is shut down. After it has returned
// a term, the context's end has no effect.
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
	unhook := e.detachContext
	e.node.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	return term, nil
}

// resign gives a term up and waits until its lock is gone.
func (e *Election) resign(ctx context.Context, term *Term) error {
	n := e.node
	n.mu.Lock()
	campaign := e.mode == modeCampaign
	if e.term == term && !term.ended.Load() {
		if campaign {
			e.requestStopLocked(EndResigned, ErrResigned)
		} else {
			e.beginStepDownLocked(termEnd{reason: EndResigned, cause: ErrResigned})
		}
	}
	n.mu.Unlock()
	if term.campaign {
		term.mainReturned()
	}
	return e.awaitRelease(ctx, term, "resigning from")
}
