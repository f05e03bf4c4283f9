package tenure

import (
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

	"github.com/exactly-one/tenure/internal/fsm"
)

// maxBatch is how many roles one call of TryAcquire asks for, so that a
// heartbeat never waits long behind it.
const maxBatch = 1000

// attemptAllNowLocked makes every follower due now: a role may have become vacant.
func (s *session) attemptAllNowLocked() {
	now := s.node.clock.Now().Mono
	s.vacancyAt = now
	for e := range s.node.followers {
		if !e.attempt.pending {
			e.attempt.nextAt, e.attempt.quickRetries = now, len(quickRetryDelays)
		}
	}
}

// dueLocked returns the elections that begin an attempt now, and when the next one
// is due.
func (s *session) dueLocked(now time.Duration) (due []*Election, next time.Duration) {
	next = math.MaxInt64
	if !s.node.mayCampaignLocked() {
		return nil, next
	}
	for e := range s.node.followers {
		a := &e.attempt
		// Never campaign while work of the last term still runs here.
		if e.term != nil || a.inFlight || a.unlocking {
			continue
		}
		if at := max(a.nextAt, a.notBefore); at > now {
			next = min(next, at)
		} else {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *Election) int { return strings.Compare(a.role.Name(), b.role.Name()) })
	due = due[:min(len(due), maxBatch)]
	for _, e := range due {
		e.attempt.inFlight = true
		if e.State() == Follower {
			e.stepLocked(fsm.AcquireAttempt, nil, nil)
		}
	}
	return due, next
}

// acquire tries to take the roles of s.trying in one batch.
func (s *session) acquire() error {
	n := s.node
	n.mu.Lock()
	trying := s.acquireBatch
	candidates := make([]AcquireRequest, len(trying))
	for i, e := range trying {
		candidates[i] = AcquireRequest{Role: e.role, Recovering: e.State() == Reconnecting}
	}
	n.mu.Unlock()

	attempts, err := s.conn.TryAcquire(candidates)
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
			result, kept = attempts[i], false
		}
		if result.Outcome == OutcomeFailed && e.attempt.updateCause(result.Err) {
			failures.add(e, result.Err)
		}
		if s.applyResultLocked(e, result, kept) {
			failed = append(failed, e)
		}
		e.wakeLocked()
	}
	failures.log(n.log)
	answered := s.backOffLocked(failed)
	n.mu.Unlock()
	return s.await(answered)
}

// failure is a cause that is not known yet for which attempts failed.
type failure struct {
	first *Election
	roles int
	err   error // of the first
}

// failures are those of one batch.
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
		log.Warn("taking a role failed", "role", failure.first.role.Name(), "roles", failure.roles, "error", failure.err)
	}
}

// applyResultLocked applies the result of one attempt and reports whether it
// failed, so that the retry strategy must be asked. kept says that the attempt
// failed but the session has kept the lock of the one before.
func (s *session) applyResultLocked(e *Election, result AcquireResult, kept bool) (failed bool) {
	a := &e.attempt
	continued := a.pending
	a.pending = kept
	state := e.State()
	stopped := state != Acquiring && state != Reconnecting
	if stopped || !s.node.mayCampaignLocked() {
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
		return s.applyFailedLocked(e, result.Err)
	}
	return false
}

// declineLocked unlocks the role, if the session holds its lock, for an election
// that does not want it any more.
func (s *session) declineLocked(e *Election, result AcquireResult) {
	holds := e.attempt.pending || result.Outcome == OutcomeGranted || result.Outcome == OutcomePending
	e.attempt.pending = false
	if holds {
		s.queueUnlockLocked(e, result.Term)
	}
}

// applyPendingLocked continues an attempt that holds the lock while its term cannot
// begin yet. LockTimeout bounds the wait for fenced transactions.
func (s *session) applyPendingLocked(e *Election, result AcquireResult) (failed bool) {
	a, now := &e.attempt, s.node.clock.Now().Mono
	// The wait is counted by the server. While a machine is suspended, its own
	// clock may stand still, so it asks again within a RefreshInterval.
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
	return s.failAttemptLocked(e, fsm.AcquireFailed, fmt.Errorf("%w: fenced transactions of the last term still run", ErrLockTimeout))
}

// applyHeldLocked ends an attempt that found the role held or reserved.
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
	if a.quickRetries > 0 && result.RetryIn == 0 {
		a.nextAt = now + nextQuickRetry(a)
		return false
	}
	if result.RetryIn > 0 {
		a.notBefore = now + result.RetryIn
	}
	return s.failAttemptLocked(e, fsm.AcquireFailed, ErrHeld)
}

// applyFailedLocked ends an attempt that met an error of the database.
func (s *session) applyFailedLocked(e *Election, err error) (failed bool) {
	a := &e.attempt
	if e.State() == Reconnecting {
		a.nextAt, a.err = s.node.clock.Now().Mono+nextQuickRetry(a), err
		return false
	}
	return s.failAttemptLocked(e, fsm.DbError, err)
}

// nextQuickRetry returns the pause before the next quick try.
func nextQuickRetry(a *attempt) time.Duration {
	if a.quickRetries == 0 {
		return quickRetryDelays[len(quickRetryDelays)-1]
	}
	a.quickRetries--
	return quickRetryDelays[len(quickRetryDelays)-1-a.quickRetries]
}

func (s *session) failAttemptLocked(e *Election, input fsm.Input, err error) bool {
	a := &e.attempt
	a.totalFailures++
	e.counters.attempts++
	a.cycleFailures++
	a.err = err
	if a.cycleFailures == 1 {
		a.firstFailure = s.node.clock.Now()
	}
	e.stepLocked(input, nil, err)
	return e.State() == Follower
}

// backOffLocked decides when to try again. Retry strategies are the program's code:
// they are asked beside the session, and an election whose strategy has not
// answered waits for it. The channel is closed when all have; it is nil if there
// are none.
func (s *session) backOffLocked(failed []*Election) (answered <-chan struct{}) {
	n := s.node
	now := n.clock.Now().Mono
	var asking sync.WaitGroup
	asked := false
	for _, e := range failed {
		strategy, a := e.cfg.Retry, &e.attempt
		if strategy == nil {
			strategy = n.cfg.Retry
		}
		if strategy == nil {
			// All such elections of the session try together.
			passed := (now - s.openedAt) / n.cfg.CheckInterval
			a.nextAt = s.openedAt + (passed+1)*n.cfg.CheckInterval
			continue
		}
		a.nextAt = math.MaxInt64 // until the answer is there
		cycle, attempts := a.cycleFailures, RetryContext{Attempt: a.cycleFailures, Elapsed: now - a.firstFailure.Mono, LastError: a.err}
		asked = true
		asking.Add(1)
		n.group.Go(func() { // ends when the strategy answers; Close waits for it
			defer asking.Done()
			delay, again := n.nextDelay(strategy, attempts)
			n.mu.Lock()
			defer n.mu.Unlock()
			e.scheduleRetryLocked(cycle, now+max(delay, 0), again)
		})
	}
	if !asked {
		return nil
	}
	done := make(chan struct{})
	n.group.Go(func() { // ends with the others
		asking.Wait()
		close(done)
	})
	return done
}

// scheduleRetryLocked takes the answer of a retry strategy about a cycle of attempts.
func (e *Election) scheduleRetryLocked(cycle int, at time.Duration, again bool) {
	a := &e.attempt
	switch {
	case e.State() != Follower || a.cycleFailures != cycle:
	case again:
		a.nextAt = min(a.nextAt, at)
		e.node.wakeSessionLocked()
	default:
		e.err = a.err
		e.requestStopLocked(EndShutdown, ErrStopping)
	}
}

// nextDelay asks a retry strategy. One that panics is asked again after a
// CheckInterval. It is called without the node's mutex.
func (n *Node) nextDelay(strategy RetryStrategy, attempts RetryContext) (delay time.Duration, again bool) {
	err := catchPanic("the retry strategy", func() { delay, again = strategy.NextDelay(attempts) })
	if err != nil {
		n.log.Error("asking the retry strategy failed", "error", err)
		return n.cfg.CheckInterval, true
	}
	return delay, again
}

// beginTermLocked begins a term.
func (s *session) beginTermLocked(e *Election, granted AcquireResult) {
	n := s.node
	t := &Term{
		election: e, session: s, number: granted.Term, acquiredAt: granted.AcquiredAt, precedingVacancy: granted.PrecedingVacancy,
		beganAt:    n.clock.Now().Mono,
		campaign: e.mode == modeCampaign, stopping: make(chan struct{}), released: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancelCause(e.valuesContext)
	if !s.trust.add(t) {
		t.cancel(ErrTrustExpired)
		return // the session is about to be given up, and the term with it
	}
	t.work.body = e.terms != nil
	s.terms[t] = struct{}{}
	e.term, e.steppingDown = t, false
	e.counters.addTermLocked(granted)
	if t.precedingVacancy >= 0 {
		n.counters.vacancies.add(t.precedingVacancy)
	}
	e.current.Store(t)
	if e.State() == Reconnecting {
		e.stepLocked(fsm.ReacquireSucceeded, t, nil)
	} else {
		e.stepLocked(fsm.AcquireSucceeded, t, nil)
	}
	if e.terms != nil {
		e.terms <- t // there is room: the last term's work has returned
	}
	n.notifySubscribersLocked()
}
