package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure/internal/endreason"
)

// TryAcquire makes one attempt to become leader now and returns the term. The error
// matches ErrHeld if another node leads, or if this node does: of several callers at most
// one gets a term. It starts a stopped election, as Start does with only the values of
// ctx. If the attempt fails, it stops the election again, unless Start was called during
// the attempt.
func (e *Election) TryAcquire(ctx context.Context) (*Term, error) {
	n := e.node
	n.mu.Lock()
	stopped := e.State() == Stopped
	failures := e.attempt.totalFailures // before the start, whose attempt is the one that counts
	n.mu.Unlock()
	var run electionRun
	if stopped {
		var err error
		if run, err = e.start(context.WithoutCancel(ctx), modeTry); err != nil {
			return nil, err
		}
	}
	term, err := e.tryOnce(ctx, failures)
	if e.endTry(run, err != nil) {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.StopTimeout)
		defer cancel()
		err = errors.Join(err, e.awaitFinished(stop, run.number))
	}
	return term, err
}

// endTry ends the special case of TryAcquire: from now on the run is like one of Start, or
// it stops if the attempt has failed. It reports whether it stops the run. It does not
// change another caller's run.
func (e *Election) endTry(run electionRun, failed bool) (stops bool) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	if e.runNumber != run.number || !e.trying {
		return false
	}
	e.trying = false
	if failed = failed && (e.term == nil || !e.term.acquired); failed { // another caller may have the term
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
	}
	return failed
}

// tryOnce waits for a term, or for the next failed attempt after so many failures.
func (e *Election) tryOnce(ctx context.Context, failures uint64) (*Term, error) {
	n := e.node
	n.mu.Lock()
	e.attempt.nextAt, e.attempt.notBefore, e.attempt.yieldUntil = 0, 0, 0
	e.polledUntil = n.clock.Now().Mono + n.cfg.CheckInterval
	n.wakeSessionLocked()
	n.mu.Unlock()
	var (
		term   *Term
		failed error
	)
	err := e.waitFor(ctx, func() bool {
		term = e.Term()
		switch {
		case term != nil && (term.acquired || e.terms != nil):
			failed = fmt.Errorf("%w: this node leads %s, in term %d", ErrHeld, e.role, term.number)
			term = nil
		case term != nil:
			term.acquired = true
		case e.attempt.totalFailures != failures && e.attempt.err != nil:
			failed = e.attempt.err
		case e.State() == Stopped:
			failed = e.stopErrorLocked()
		default:
			failed = cmp.Or(e.ineligibleLocked(), e.withoutRoomLocked())
		}
		return term != nil || failed != nil
	})
	return term, cmp.Or(failed, err)
}
