package tenure

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
