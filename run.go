package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/retry"
)

// Work is what a leader does. Its context is canceled when trust in the term ends, before
// another node can lead; context.Cause returns the reason. Work should then return soon:
// until it has returned, the role stays locked and this node does not campaign for it.
type Work func(ctx context.Context, term *Term) error

// Run campaigns for the role and calls work, in this goroutine, for each term.
// When ctx ends or the election is shut down, it resigns, waits until the role
// is free, and returns nil.
//
// If work returns during its term, the node gives up the role, and another candidate
// acquires it immediately. After [Done], Run returns nil. Any other error goes to the
// error callbacks. After nil or such an error, this node campaigns again after a delay,
// which grows with each such term; see [ElectionConfig].WorkRetry.
//
// Run returns ErrAlreadyStarted if the election is already started, and an error matching
// ErrStopped and its cause if a retry strategy gives up or, with NoReacquire, an attempt
// fails with an error of the database.
func (e *Election) Run(ctx context.Context, work Work) error {
	run, err := e.start(ctx, modeRun)
	if err != nil {
		return err
	}
	defer e.stopAndWait(run) // if work panics
	var failures workFailures
	for {
		term, err := e.nextTerm(run)
		if term == nil {
			return err
		}
		if next, early := e.lead(term, work, &failures); early {
			e.stayBehind(run, next)
		}
	}
}

// nextAttempt is when a node campaigns again after its work returned during a term.
type nextAttempt struct {
	failure retry.Failure
	delay   time.Duration
	again   bool // false if the strategy gives up
}

// countFailure counts a term ended for work. An election of a group counts in the group:
// otherwise a node with failing work would begin a new series with every role.
func (e *Election) countFailure(own *workFailures, term *Term, early bool, err error) retry.Failure {
	if e.group == nil {
		own.add(term, early, err)
		return own.Failure
	}
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.group.failures.add(term, early, err)
	return e.group.failures.Failure
}

var errWorkReturned = errors.New("work returned during its term")

// nextAttempt asks the strategy for failed work.
func (e *Election) nextAttempt(failure retry.Failure) nextAttempt {
	interval := e.node.cfg.CheckInterval
	strategy := e.cfg.WorkRetry
	if strategy == nil {
		strategy = retry.ExponentialBackoff{Base: interval, Max: longTerm * interval}
	}
	delay, again := e.node.nextDelay(strategy, failure)
	return nextAttempt{failure, max(delay, min(stepDownPause, interval/2)), again}
}

// stayBehind leaves the role to other candidates until the next attempt, or stops the
// election.
func (e *Election) stayBehind(r electionRun, next nextAttempt) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.finishedLocked(r.number) {
		return
	}
	if !next.again {
		e.err = cmp.Or(next.failure.LastError, errWorkReturned)
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
		return
	}
	n.log.Warn("work returned during its term; leaving the role to other candidates", "role", e.role.Name(),
		"attempt", next.failure.Attempt, "for", next.delay)
	e.attempt.notBefore = n.clock.Now().Mono + next.delay
	n.wakeSessionLocked()
}

// lead calls work for one term. It reports whether work returned during its term. If so,
// no attempt follows until stayBehind.
func (e *Election) lead(term *Term, work Work, failures *workFailures) (next nextAttempt, early bool) {
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
		e.stopAfterLocked(endOfWork(err))
	} else {
		early = e.term == term && !term.stopRequested && term.Valid()
	}
	if failed != nil {
		n.log.Error("work failed", "role", e.role.Name(), "term", term.number, "error", err)
		e.postLocked(Event{Kind: EventError, Term: term, Err: failed})
	}
	if early {
		e.attempt.notBefore = math.MaxInt64
	}
	n.mu.Unlock()
	failure := e.countFailure(failures, term, early, failed)
	if early {
		next = e.nextAttempt(failure)
	}
	n.mu.Lock()
	if early {
		why := termEnd{reason: endreason.Resigned, cause: ErrResigned, detail: recordedCause(cmp.Or(err, errWorkReturned))}
		if next.again {
			why.nextIn = next.delay
		}
		e.beginStepDownLocked(why)
	}
	return next, early
}

// endOfWork returns the end of a term after Done.
func endOfWork(err error) termEnd {
	completed, ok := errors.AsType[interface {
		error
		NextWithin() time.Duration
	}](err)
	if ok {
		return termEnd{reason: endreason.Completed, cause: ErrResigned, nextIn: max(0, completed.NextWithin())}
	}
	return termEnd{reason: endreason.Resigned, cause: ErrResigned, detail: recordedCause(err)}
}

// recordedCause returns an error's text for the records: valid for every database, of a
// bounded length. Done alone is no cause.
func recordedCause(err error) string {
	if err.Error() == Done.Error() {
		return ""
	}
	const most = 500
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// nextTerm waits for the next term of a run. It returns nil when the run has
// ended, with its work and locks. If the only term of Campaign ended before nextTerm
// could return it, the error says why.
func (e *Election) nextTerm(r electionRun) (term *Term, err error) {
	var missed *Term
	_ = e.waitFor(context.Background(), func() bool {
		var ended *Term
		term, ended = e.takeTermLocked(r)
		missed = cmp.Or(ended, missed)
		if term != nil {
			return true
		}
		if !e.finishedLocked(r.number) {
			return false
		}
		switch {
		case e.runNumber == r.number && e.err != nil:
			err = e.stopErrorLocked()
		case missed != nil && missed.campaign:
			err = withDetail(ErrStopped, context.Cause(missed.ctx))
		}
		return true
	})
	return term, err
}

// takeTermLocked returns the next valid term of a run, or nil, and the last ended term
// before it. It records the work of all ended terms before it as returned.
func (e *Election) takeTermLocked(r electionRun) (next, ended *Term) {
	for {
		select {
		case term := <-r.terms:
			if !term.stopRequested && term.Valid() {
				return term, ended
			}
			ended = term
			term.clearMain()
			term.advanceLocked()
		default:
			return nil, ended
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
