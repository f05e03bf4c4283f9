package tenure

import (
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/fsm"
)

// attempt is the state of an election's tries to take the role.
type attempt struct {
	nextAt           time.Duration // when to try, on the monotonic clock
	notBefore    time.Duration // others go first until then
	quickRetries int           // quick tries left after news of a vacancy
	inFlight     bool          // in a call of TryAcquire
	pending      bool          // the lock is held, the term cannot begin yet
	unlocking    bool          // a lock without a use is being released
	fencedSince     time.Duration // waiting for fenced transactions since

	cycleFailures    int     // failed attempts since the last term or start
	firstFailure    Instant // when the first of them was made
	cause    string  // of the last error of the database, until an attempt has another outcome
	sameCause    bool    // the last error had the cause of the one before
	totalFailures uint64  // failed attempts ever
	err      error   // of the last one
}

// updateCause takes note of an error of the database and reports whether it has
// another cause than that of the attempt before: one event tells of one cause,
// however often it is met.
func (a *attempt) updateCause(err error) bool {
	cause := rootCause(err)
	a.sameCause = cause == a.cause
	a.cause = cause
	return !a.sameCause
}

// rootCause is the text of the innermost error: what was being done differs from
// attempt to attempt.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			inner = several.Unwrap()[len(several.Unwrap())-1]
		}
		//nolint:errorlint // this link of the chain alone is asked
		if _, category := err.(*derived); category || inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// mayHoldLock reports whether the session may hold the lock without a term, or be
// about to.
func (a *attempt) mayHoldLock() bool { return a.inFlight || a.pending || a.unlocking }

// Quick tries after news of a vacancy: a dying session's locks are not all
// freed at the same instant.
var quickRetryDelays = [...]time.Duration{
	2 * time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond,
}

// recentVacancy is how long after a notification an election that starts makes
// quick tries: it may start because a node died.
const recentVacancy = time.Second

// stepDownPause is how long a node that stepped down waits, at most, before it
// campaigns for that role again. It waits no longer than half of the time for which
// a hand-over reserves a role: the new leader may hand it back at once.
const stepDownPause = time.Second

// stepLocked feeds the state machine and performs its actions. term and err go with
// the events that the transition emits.
func (e *Election) stepLocked(input fsm.Input, term *Term, err error) {
	n, from := e.node, e.State()
	campaign := e.mode == modeCampaign
	to, actions, ok := fsm.Step(from, input, fsm.Policy{
		AutoReacquire: !e.cfg.NoReacquire && !campaign,
		Grace:         e.cfg.ReconnectGrace > 0 && !campaign,
		SteppingDown:  e.steppingDown && !e.stopping,
	})
	if !ok {
		n.log.Error("impossible transition", "role", e.role.Name(), "from", from, "input", input)
		return
	}
	if from != to {
		e.state.Store(uint32(to))
		n.counters.addTransitionLocked(from, to, input)
		e.logTransitionLocked(from, to, term, err)
		e.postLocked(Event{Kind: EventStateChange, From: from, To: to, Term: term, Err: err})
	}
	for _, action := range actions {
		e.performLocked(action, term, err)
	}
	if to == Stopped && from != Stopped {
		e.cleanUpLocked()
	}
	e.wakeLocked()
}

func (e *Election) performLocked(action fsm.Action, term *Term, err error) {
	n := e.node
	now := n.clock.Now()
	switch action {
	case fsm.OpenConnection:
		e.attempt = attempt{totalFailures: e.attempt.totalFailures, firstFailure: now}
		if s := n.session; s != nil && now.Mono-s.vacancyAt < recentVacancy {
			e.attempt.quickRetries = len(quickRetryDelays)
		}
		n.followers[e] = struct{}{}
		n.requestSession()
	case fsm.ScheduleAttempt:
		n.wakeSessionLocked()
	case fsm.ResetRetry:
		e.attempt.cycleFailures, e.attempt.err = 0, nil
		e.clearReconnectLocked()
	case fsm.StartGrace:
		e.lostTerm, e.lostCause = term, err
		e.stopGraceTimer = n.clock.AfterFunc(e.cfg.ReconnectGrace, func() { e.graceExpired(term) })
	case fsm.LogRecovered:
		n.log.Info("leadership recovered within the reconnect grace", "role", e.role.Name(), "term", term.number)
	case fsm.EmitAcquired:
		e.postLocked(Event{Kind: EventAcquired, Term: term})
	case fsm.EmitReleased:
		e.attempt.notBefore = max(e.attempt.notBefore, now.Mono+min(stepDownPause, n.cfg.CheckInterval/2))
		e.postLocked(Event{Kind: EventReleased, Term: term})
	case fsm.EmitLost:
		if e.lostTerm != nil {
			term, err = e.lostTerm, e.lostCause
		}
		e.clearReconnectLocked()
		e.counters.losses++
		e.postLocked(Event{Kind: EventLost, Term: term, Err: err})
	case fsm.EmitAcquireFailed:
		e.postLocked(Event{Kind: EventAcquireFailed, Err: err})
	case fsm.EmitError:
		if e.attempt.sameCause {
			break // told before
		}
		e.postLocked(Event{Kind: EventError, Term: term, Err: err})
	case fsm.EmitStopped:
		e.postLocked(Event{Kind: EventStopped})
	default: // fsm.Shared says who performs it
	}
}

// cleanUpLocked cleans up after the election has stopped.
func (e *Election) cleanUpLocked() {
	delete(e.node.followers, e)
	e.node.unlockPendingLocked(e)
	e.clearReconnectLocked()
	e.mode, e.steppingDown = modeNone, false
	if e.detachContext != nil {
		go e.detachContext() // asks a context of the program; ends at once unless that blocks
		e.detachContext = nil
	}
}

func (e *Election) clearReconnectLocked() {
	if e.stopGraceTimer != nil {
		e.stopGraceTimer()
	}
	e.stopGraceTimer, e.lostTerm, e.lostCause = nil, nil, nil
}

func (e *Election) graceExpired(lost *Term) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.State() == Reconnecting && e.lostTerm == lost {
		e.stepLocked(fsm.GraceExpired, lost, e.lostCause)
		if e.State() == Follower && (e.attempt.pending || e.attempt.inFlight) {
			e.stepLocked(fsm.AcquireAttempt, nil, nil) // the try under way goes on as an ordinary one
		}
	}
}

func (e *Election) logTransitionLocked(from, to State, term *Term, err error) {
	level := slog.LevelInfo
	if from == Acquiring && to == Follower || to == Acquiring {
		level = slog.LevelDebug // every check interval
	}
	attributes := []any{"role", e.role.Name(), "from", from.String(), "to", to.String()}
	if e.role.kind != keyFromName {
		attributes = append(attributes, "key", e.role.LockKey(uuid.Nil).String())
	}
	if term != nil {
		attributes = append(attributes, "term", term.number)
	}
	if e.attempt.cycleFailures > 0 {
		attributes = append(attributes, "attempt", e.attempt.cycleFailures)
	}
	if err != nil {
		attributes = append(attributes, "error", err)
	}
	e.node.log.Log(e.node.ctx, level, "state_change", attributes...)
}
