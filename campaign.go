package tenure

import (
	"cmp"
	"context"
	"time"

	"github.com/exactly-one/tenure/internal/endreason"
)

// Campaign campaigns for the role until elected and returns the term. The caller works
// under the term's context and calls [Term.Resign] when the work has returned, even if the
// term was lost. The election stops after the term.
//
// Several goroutines may call Campaign: each gets its own term, in the order of their
// calls. A call waits until the previous term is resigned. If the previous term has ended
// but is not resigned, the call gives up after [Config].StopTimeout, and its error matches
// ErrAlreadyStarted and ErrWorkRunning.
//
// Campaign returns the context's error if ctx ends first, and ErrAlreadyStarted if Start
// or Run has started the election. The error matches ErrStopped if an attempt fails with
// an error of the database, the retry strategy gives up, the election is shut down, or the
// term ends before Campaign can return it. Once it has returned a term, the end of ctx has
// no effect.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	run, err := e.start(ctx, modeCampaign)
	if err != nil {
		return nil, err
	}
	term, err := e.nextTerm(run)
	switch {
	case term == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case term == nil:
		return nil, cmp.Or(err, ErrStopped)
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
	if e.term == term && term.Valid() {
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
	return e.awaitRelease(ctx, term, "resign from")
}

// Resign gives up the term and waits until the role is free. For a term from
// [Election.Campaign] it also reports the return of the work under the term: call it
// exactly once for each such term, even if the term was lost. Do not call it from the
// function of [Election.Run], because it would wait for this function: return Done or an
// error instead.
//
// If ctx ends first, the error matches ErrShutdown, and the resignation continues.
func (t *Term) Resign(ctx context.Context) error { return t.election.resign(ctx, t) }

// Complete resigns after the work of the term is completed, and stops the election. Until
// the next term of the role, the role is at rest, and not vacant. If within is positive, it
// counts as vacant if no term begins within that time. Call Complete as Resign; as with
// Resign, the error matches ErrShutdown if ctx ends first.
func (t *Term) Complete(ctx context.Context, within time.Duration) error {
	e := t.election
	e.node.mu.Lock()
	if e.term == t {
		e.stopAfterLocked(termEnd{reason: endreason.Completed, cause: ErrResigned, nextIn: max(0, within)})
	}
	e.node.mu.Unlock()
	if t.campaign {
		t.mainReturned()
	}
	return e.awaitRelease(ctx, t, "resign from")
}
