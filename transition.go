package tenure

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/fsm"
)

// quickRetryDelays are the delays of quick retries after a notification: a
// server does not release all locks of a session at the same instant.
var quickRetryDelays = [...]time.Duration{
	2 * time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond,
}

const quickRetries = int8(len(quickRetryDelays))

// recentVacancy is how long after a notification a starting election makes quick retries:
// a node's death may be the reason for the start.
const recentVacancy = time.Second

// stepDownPause is the longest time for which a node leaves a role to others after giving
// it up. It ends early when another term has begun or the role is reserved for the node.
const stepDownPause = time.Second

// stepLocked feeds the state machine and performs its actions. term and err are attached
// to the events of the transition.
func (e *Election) stepLocked(input fsm.Input, term *Term, err error) {
	n, from := e.node, e.State()
	campaign := e.mode == modeCampaign
	next, actions, ok := fsm.Step(fsm.State(from), input, fsm.Policy{
		AutoReacquire: !e.cfg.NoReacquire && !campaign,
		Grace:         e.cfg.ReconnectGrace > 0 && !campaign,
		SteppingDown:  e.steppingDown && !e.stopping,
	})
	if !ok {
		n.log.Error("impossible transition", "role", e.role.Name(), "from", from, "input", input)
		return
	}
	to := State(next)
	if from != to {
		e.state.Store(uint32(to))
		n.counters.addTransitionLocked(from, to, input)
		e.logTransitionLocked(from, to, term, err)
		e.postLocked(Event{Kind: EventStateChange, From: from, To: to, Term: term, Err: err})
	}
	for _, action := range actions {
		e.performLocked(action, term, err)
	}
	if from == Acquiring && input == fsm.DbError && to == Stopped {
		e.err = err
	}
	if to == Stopped && from != Stopped {
		e.cleanUpLocked()
	}
	e.wakeLocked()
}

func (e *Election) performLocked(action fsm.Action, term *Term, err error) {
	n := e.node
	switch action {
	case fsm.OpenConnection:
		now := n.clock.Now().Mono
		e.attempt = attempt{totalFailures: e.attempt.totalFailures, firstFailure: now}
		if s := n.session; s != nil && now-s.vacancyAt < recentVacancy {
			e.attempt.quickRetries = quickRetries
		}
		e.takeOver.session = nil
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
		e.attempt.yieldTerm, e.attempt.yieldUntil = term.number, n.clock.Now().Mono+min(stepDownPause, n.cfg.CheckInterval/2)
		e.attempt.nextAt = e.attempt.yieldUntil // or the next notification
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
			break // reported by an earlier event
		}
		e.postLocked(Event{Kind: EventError, Term: term, Err: err})
	case fsm.EmitStopped:
		e.postLocked(Event{Kind: EventStopped})
	default: // the session and the node perform it for all elections
	}
}

// cleanUpLocked takes a stopped election out of the session.
func (e *Election) cleanUpLocked() {
	delete(e.node.followers, e)
	e.node.unlockPendingLocked(e)
	if e.group != nil {
		e.node.wakeSessionLocked() // it may have left room to another election of the group
	}
	e.clearReconnectLocked()
	e.mode, e.steppingDown = modeNone, false
	if e.detachContext != nil {
		go e.detachContext() // calls user code; exits when that returns, nothing waits for it
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
			e.stepLocked(fsm.AcquireAttempt, nil, nil) // the current attempt continues as an ordinary one
		}
	}
}

func (e *Election) logTransitionLocked(from, to State, term *Term, err error) {
	level := slog.LevelInfo
	if from == Acquiring && to == Follower || to == Acquiring {
		level = slog.LevelDebug // every check interval
	}
	if !e.node.log.Enabled(e.node.ctx, level) {
		return
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
