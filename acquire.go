package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/retry"
)

// maxBatch limits the roles in one call of TryAcquire: the next heartbeat waits for that
// call.
const maxBatch = 1000

// attemptAllNowLocked makes every follower due: a role may have become vacant, or the
// wait of a pending attempt may be over.
func (s *session) attemptAllNowLocked() {
	now := s.node.clock.Now().Mono
	s.vacancyAt = now
	for e := range s.node.followers {
		e.attempt.nextAt = now
		if !e.attempt.pending {
			e.attempt.quickRetries = quickRetries
		}
	}
}

// dueLocked returns the elections whose attempt begins now, and when the next
// one is due.
func (s *session) dueLocked(now time.Duration) (due []*Election, next time.Duration) {
	next = math.MaxInt64
	if !s.node.mayCampaignLocked() {
		return nil, next
	}
	for e := range s.node.followers {
		a := &e.attempt
		// Invariant 4: no attempt while work of the last term still runs in this process.
		if e.term != nil || a.inFlight || a.unlocking || !e.mayCampaignLocked() {
			continue
		}
		if at := a.dueAt(); at > now {
			next = min(next, at)
		} else {
			due = append(due, e)
		}
	}
	due, more := s.node.admitLocked(due, now)
	next = min(next, more)
	due = firstByRole(due, maxBatch)
	for _, e := range due {
		e.attempt.inFlight = true
		if e.State() == Follower {
			e.stepLocked(fsm.AcquireAttempt, nil, nil)
		}
	}
	return due, next
}

// firstByRole returns the first elections in the order of their roles, at most limit. It
// keeps twice as many at a time: to sort 10,000 takes longer than a batch may.
func firstByRole(all []*Election, limit int) []*Election {
	byRole := func(a, b *Election) int { return strings.Compare(a.role.Name(), b.role.Name()) }
	first := all[:0]
	var last *Election // of the first ones, once there are limit
	for _, e := range all {
		if last != nil && byRole(e, last) > 0 {
			continue
		}
		if first = append(first, e); len(first) == 2*limit {
			slices.SortFunc(first, byRole)
			first, last = first[:limit], first[limit-1]
		}
	}
	slices.SortFunc(first, byRole)
	return first[:min(len(first), limit)]
}

// acquire tries to acquire the roles of s.acquireBatch in one call.
func (s *session) acquire() error {
	n := s.node
	n.mu.Lock()
	trying := s.acquireBatch
	requests := make([]AcquireRequest, len(trying))
	for i, e := range trying {
		requests[i] = AcquireRequest{Role: e.role, Recovering: e.State() == Reconnecting}
		s.sends(steps.Tries, e.role.Name(), 0)
		if left := e.attempt.yieldUntil - n.clock.Now().Mono; left > 0 {
			requests[i].YieldFor, requests[i].YieldTerm = left, e.attempt.yieldTerm
		}
	}
	n.mu.Unlock()

	results, err := s.conn.TryAcquire(requests)
	_ = s.endTrust(err)

	n.mu.Lock()
	if s.ended {
		n.mu.Unlock()
		return nil
	}
	if errors.Is(err, ErrSessionLost) {
		n.mu.Unlock()
		return err
	}
	s.acquireBatch = nil
	var failed []*Election
	var failures failures
	for i, e := range trying {
		e.attempt.inFlight = false
		result, kept := AcquireResult{Outcome: OutcomeFailed, Err: err}, e.attempt.pending
		if err == nil {
			result, kept = results[i], false
		}
		s.beatSoon = s.beatSoon || result.Outcome == OutcomeGranted && result.NotDurable
		if result.Outcome == OutcomeFailed && e.attempt.updateCause(result.Err) {
			failures.add(e, result.Err)
		}
		if s.applyResultLocked(e, result, kept) {
			failed = append(failed, e)
		}
		e.wakeLocked()
	}
	failures.log(n.log)
	scheduled := s.backOffLocked(failed)
	n.mu.Unlock()
	return s.await(scheduled)
}

// failure is a new cause of failed attempts.
type failure struct {
	first *Election
	roles int
	err   error // of first
}

// failures are the new causes of one batch.
type failures []failure

func (f *failures) add(e *Election, err error) {
	for i, known := range *f {
		if known.first.attempt.cause == e.attempt.cause {
			(*f)[i].roles++
			return
		}
	}
	*f = append(*f, failure{e, 1, err})
}

func (f failures) log(log *slog.Logger) {
	for _, failure := range f {
		log.Warn("acquiring a role failed", "role", failure.first.role.Name(), "roles", failure.roles, "error", failure.err)
	}
}

// applyResultLocked applies the result of one attempt and reports whether the
// retry strategy must be called because it failed. With kept, the call failed
// but the session still holds the lock of a pending attempt.
func (s *session) applyResultLocked(e *Election, result AcquireResult, kept bool) (failed bool) {
	a := &e.attempt
	continued := a.pending
	a.pending = kept
	state := e.State()
	stopped := state != Acquiring && state != Reconnecting
	if stopped || !e.mayCampaignLocked() {
		s.declineLocked(e, result)
		return !stopped && e.attemptCanceledLocked()
	}
	if !continued {
		a.fencedSince = 0
	}
	if result.Outcome != OutcomeFailed {
		a.cause, a.sameCause = "", false
	}
	switch result.Outcome {
	case OutcomeGranted:
		s.beginTermLocked(e, result)
	case OutcomePending:
		return s.applyPendingLocked(e, result)
	case OutcomeHeld:
		return s.applyHeldLocked(e, result)
	case OutcomeFailed:
		return s.applyFailedLocked(e, fsm.DbError, result.Err)
	}
	return false
}

// declineLocked unlocks the role of an election that has stopped campaigning, if the
// session holds the lock.
func (s *session) declineLocked(e *Election, result AcquireResult) {
	holds := e.attempt.pending || result.Outcome == OutcomeGranted || result.Outcome == OutcomePending
	e.attempt.pending = false
	if holds {
		s.queueUnlockLocked(e, result.Term)
	}
}

// applyPendingLocked continues an attempt with the lock but without a term, which cannot
// begin yet. LockTimeout bounds the wait for fenced transactions.
func (s *session) applyPendingLocked(e *Election, result AcquireResult) (failed bool) {
	a, now := &e.attempt, s.node.clock.Now().Mono
	// The server measures the wait. This machine's clock may stop while it is
	// suspended, so the next attempt follows within a RefreshInterval.
	a.pending, a.nextAt = true, now+min(max(result.RetryIn, time.Millisecond), s.node.cfg.RefreshInterval)
	if !result.Fenced {
		a.fencedSince = 0
		return false
	}
	if a.fencedSince == 0 {
		a.fencedSince = now
	}
	if now-a.fencedSince < s.node.cfg.LockTimeout {
		return false
	}
	a.pending = false
	s.queueUnlockLocked(e, 0)
	err := fmt.Errorf("%w: fenced transactions of the last term still run", ErrLockTimeout)
	if e.State() == Reconnecting { // no event: the attempts continue until the grace ends
		failures{{e, 1, err}}.log(s.node.log)
	}
	return s.applyFailedLocked(e, fsm.AcquireFailed, err)
}

// applyHeldLocked ends an attempt for a role that is held or reserved.
func (s *session) applyHeldLocked(e *Election, result AcquireResult) (failed bool) {
	n, a := s.node, &e.attempt
	now := n.clock.Now().Mono
	switch {
	case e.State() == Reconnecting && (result.Holder == n.id || result.Holder == uuid.Nil):
		a.nextAt = now + nextQuickRetry(a) // this node's lost session still holds it
		return false
	case e.State() == Reconnecting:
		e.counters.attempts++
		e.stepLocked(fsm.ReacquireFailed, e.lostTerm, e.lostCause)
		a.nextAt = now + n.cfg.CheckInterval
		return false
	}
	if a.quickRetries > 0 && result.RetryIn == 0 && !result.Led {
		a.nextAt = now + nextQuickRetry(a)
		return false
	}
	failed = s.failAttemptLocked(e, fsm.AcquireFailed, ErrHeld)
	if result.RetryIn > 0 {
		// Reserved for another node, or left to others: no quick retries. The notification
		// of the end may be lost.
		a.nextAt = now + min(result.RetryIn, n.cfg.CheckInterval)
		return false
	}
	return failed
}

// applyFailedLocked ends a failed attempt. Within the reconnect grace, the next one
// follows.
func (s *session) applyFailedLocked(e *Election, input fsm.Input, err error) (failed bool) {
	a := &e.attempt
	if e.State() == Reconnecting {
		a.nextAt, a.err = s.node.clock.Now().Mono+nextQuickRetry(a), err
		return false
	}
	return s.failAttemptLocked(e, input, err)
}

// nextQuickRetry returns the delay before the next quick retry.
func nextQuickRetry(a *attempt) time.Duration {
	if a.quickRetries == 0 {
		return quickRetryDelays[len(quickRetryDelays)-1]
	}
	a.quickRetries--
	return quickRetryDelays[quickRetries-1-a.quickRetries]
}

// failAttemptLocked ends an attempt and reports whether the election remains a
// follower.
func (s *session) failAttemptLocked(e *Election, input fsm.Input, err error) bool {
	a := &e.attempt
	a.totalFailures++
	e.counters.attempts++
	a.cycleFailures++
	a.err = err
	if a.cycleFailures == 1 {
		a.firstFailure = s.node.clock.Now().Mono
	}
	e.stepLocked(input, nil, err)
	return e.State() == Follower
}

// backOffLocked schedules the next attempts after failed ones. It calls retry strategies
// on separate goroutines, because they are user code. An election makes no attempt before
// its strategy has returned. done is closed when all strategies have returned; it is nil
// if there are none.
func (s *session) backOffLocked(failed []*Election) (done <-chan struct{}) {
	n := s.node
	now := n.clock.Now().Mono
	var strategies sync.WaitGroup
	called := false
	for _, e := range failed {
		strategy, a := e.cfg.Retry, &e.attempt
		if strategy == nil {
			strategy = n.cfg.Retry
		}
		if strategy == nil {
			// These elections try together, in one call.
			intervals := (now - s.openedAt) / n.cfg.CheckInterval
			a.nextAt = s.openedAt + (intervals+1)*n.cfg.CheckInterval
			continue
		}
		a.nextAt = math.MaxInt64 // until scheduleRetryLocked
		cycle, attempts := a.cycleFailures, retry.Failure{Attempt: a.cycleFailures, Elapsed: now - a.firstFailure, LastError: a.err}
		called = true
		strategies.Add(1)
		n.group.Go(func() { // exits when the strategy returns; Close waits through n.group
			defer strategies.Done()
			delay, again := n.nextDelay(strategy, attempts)
			n.mu.Lock()
			defer n.mu.Unlock()
			e.scheduleRetryLocked(cycle, now+delay, again)
		})
	}
	if !called {
		return nil
	}
	returned := make(chan struct{})
	n.group.Go(func() { // exits after the goroutines above; Close waits through n.group
		strategies.Wait()
		close(returned)
	})
	return returned
}

// scheduleRetryLocked applies the decision of a retry strategy about a cycle of
// attempts.
func (e *Election) scheduleRetryLocked(cycle int, at time.Duration, again bool) {
	a := &e.attempt
	switch {
	case e.State() != Follower || a.cycleFailures != cycle:
	case again:
		a.nextAt = min(a.nextAt, at)
		e.node.wakeSessionLocked()
	default:
		e.err = a.err
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
	}
}

// nextDelay calls a retry strategy, without n.mu because it is user code. If
// the strategy panics, the next attempt follows after a CheckInterval.
func (n *Node) nextDelay(strategy retry.Strategy, attempts retry.Failure) (delay time.Duration, again bool) {
	err := catchPanic("the retry strategy", func() { delay, again = strategy.NextDelay(attempts) })
	if err != nil {
		n.log.Error("calling the retry strategy failed", "error", err)
		return n.cfg.CheckInterval, true
	}
	return min(max(delay, 0), timespan.Longest), again
}

// beginTermLocked begins a term.
func (s *session) beginTermLocked(e *Election, granted AcquireResult) {
	n := s.node
	t := &Term{
		election: e, session: s, number: granted.Term, acquiredAt: granted.AcquiredAt, precedingVacancy: granted.PrecedingVacancy,
		beganAt:   n.clock.Now().Mono,
		takenOver: granted.Previous > 0 && granted.Previous == e.takeOver.asked,
		campaign:  e.mode == modeCampaign,
	}
	t.ctx, t.cancel = context.WithCancelCause(e.valuesContext)
	if !s.trust.add(t) {
		t.cancel(ErrTrustExpired)
		return // the session is about to end, and the lock with it
	}
	t.work.body = e.terms != nil
	s.step(steps.Leads, t.Role().Name(), t.number)
	s.terms[t] = struct{}{}
	e.term, e.steppingDown = t, false
	e.counters.addTermLocked(granted)
	if t.precedingVacancy >= 0 {
		n.counters.vacancies.add(t.precedingVacancy)
	}
	e.current.Store(t)
	e.wakeGroupLocked()
	if e.State() == Reconnecting {
		e.stepLocked(fsm.ReacquireSucceeded, t, nil)
	} else {
		e.stepLocked(fsm.AcquireSucceeded, t, nil)
	}
	if e.terms != nil {
		e.terms <- t // does not block: the last term's work has returned
	}
	n.notifySubscribersLocked()
}

// cancelAttemptsLocked ends the attempts for which the node may no longer campaign.
func (s *session) cancelAttemptsLocked() {
	for e := range s.node.followers {
		if !e.mayCampaignLocked() && e.attempt.pending && !e.attempt.inFlight {
			s.node.unlockPendingLocked(e)
			e.attemptCanceledLocked()
		}
	}
}

// attemptCanceledLocked records the end of an attempt because the node may no longer
// campaign. The next attempt begins when it may again. It returns false: the retry
// strategy is not called.
func (e *Election) attemptCanceledLocked() bool {
	e.attempt.nextAt, e.attempt.quickRetries = math.MaxInt64, 0
	if e.State() == Acquiring {
		e.attempt.totalFailures++
		e.attempt.err = cmp.Or(e.ineligibleLocked(), ErrNotActive)
		e.stepLocked(fsm.AcquireFailed, nil, e.attempt.err)
	}
	return false
}
