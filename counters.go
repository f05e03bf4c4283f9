package tenure

import (
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/fsm"
)

// counters are the counters of a node.
type counters struct {
	transitions map[Transition]uint64
	events      map[EventKind]uint64
	panics      uint64

	sessions, sessionFailures uint64
	heartbeats, vacancies     histogram
	heartbeatFailures         uint64
}

func newCounters() counters {
	return counters{transitions: map[Transition]uint64{}, events: map[EventKind]uint64{}}
}

// addTransitionLocked counts a change of state.
func (t *counters) addTransitionLocked(from, to State, input fsm.Input) {
	t.transitions[Transition{from, to, input.String()}]++
}

// Transition is a change of state of an election and its reason, an input of
// the state machine such as "AcquireSucceeded" or "HealthFailed".
type Transition struct {
	From, To State
	Reason   string
}

// callbackDelays are the times from events to the return of their callbacks.
type callbackDelays struct {
	sync.Mutex // a leaf
	histogram
}

func (d *callbackDelays) record(took time.Duration) {
	d.Lock()
	defer d.Unlock()
	d.add(took)
}

func (d *callbackDelays) soFar() Histogram {
	d.Lock()
	defer d.Unlock()
	return d.snapshot()
}

// electionCounters are the counters of an election.
type electionCounters struct {
	attempts, terms, failovers, losses uint64
	lastTerm                           int64 // the last term that began here
}

// addTermLocked counts a term. A role's first term is not a failover. Term
// numbers need not be consecutive.
func (t *electionCounters) addTermLocked(granted AcquireResult) {
	t.attempts++
	t.terms++
	if granted.Previous != 0 && granted.Previous != t.lastTerm {
		t.failovers++
	}
	t.lastTerm = granted.Term
}
