package tenure

import (
	"maps"
	"math"
	"time"

	"github.com/exactly-one/tenure/internal/fsm"
)

// Stats are figures about a node and its elections, for monitoring. What they
// count, they count since [Open].
type Stats struct {
	// Connected and TrustRemaining tell of the node's session: whether it may
	// be trusted, and for how long if no further heartbeat is acknowledged.
	Connected      bool
	TrustRemaining time.Duration

	// Sessions counts those that were opened, and SessionFailures the attempts
	// to open one that failed.
	Sessions        uint64
	SessionFailures uint64
	// Heartbeats says how long acknowledged ones took, and HeartbeatFailures
	// counts the others.
	Heartbeats        Histogram
	HeartbeatFailures uint64
	// Vacancies says for how long nobody had led when terms of this node began,
	// where that is known; see [Term.PrecedingVacancy].
	Vacancies Histogram

	// Transitions counts the changes of state of all elections.
	Transitions map[Transition]uint64
	// Events counts what happened to all elections, whether or not a function
	// was registered for it.
	Events map[EventKind]uint64
	// CallbacksWaiting is how many events have not been told to the registered
	// functions yet. Many mean that one of those is slow or hangs.
	CallbacksWaiting int
	// CallbackDelays says how long after an event its functions had returned, and
	// OldestCallbackAge is how long ago the oldest event was of which that is not so
	// yet; 0 if there is none.
	CallbackDelays    Histogram
	OldestCallbackAge time.Duration
	// CallbackPanics counts the panics of registered functions.
	CallbackPanics uint64

	// Elections are those of the node, in no particular order.
	Elections []ElectionStats
}

// Transition is a change of state of an election and its reason, which is an
// input of the state machine: "AcquireSucceeded", "HealthFailed".
type Transition struct {
	From, To State
	Reason   string
}

// ElectionStats are figures about one election.
type ElectionStats struct {
	Role       string
	State      State
	Term       int64         // the present term's number; 0 if this node does not lead
	LeadingFor time.Duration // for how long the present term has lasted, on the node's clock

	Attempts uint64 // to take the role, successful or not
	Terms    uint64 // that began here
	// Failovers counts the terms that began here after another node's term. A
	// node is new with each start of a program; terms that were handed over
	// count too.
	Failovers uint64
	Losses    uint64 // terms that were lost, and not given up
}

// counters is what a node counts about its elections.
type counters struct {
	transitions map[Transition]uint64
	events      map[EventKind]uint64
	panics      uint64

	sessions, sessionFailures        uint64
	heartbeats, vacancies, callbacks histogram
	heartbeatFailures                uint64
}

func newCounters() counters {
	return counters{transitions: map[Transition]uint64{}, events: map[EventKind]uint64{}}
}

// electionCounters is what an election counts.
type electionCounters struct {
	attempts, terms, failovers, losses uint64
	lastTerm                           int64 // that began here
}

// addTermLocked counts a term. The first one ever is no failover. Numbers need not be
// consecutive.
func (t *electionCounters) addTermLocked(granted AcquireResult) {
	t.attempts++
	t.terms++
	if granted.Previous != 0 && granted.Previous != t.lastTerm {
		t.failovers++
	}
	t.lastTerm = granted.Term
}

// addTransitionLocked counts a change of state.
func (t *counters) addTransitionLocked(from, to State, input fsm.Input) {
	t.transitions[Transition{from, to, input.String()}]++
}

// Stats returns the present figures. It asks no database and never waits for
// one, so it may be called as often as a monitoring system likes: it takes about
// a millisecond for 10,000 elections.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	stats := Stats{
		Transitions:    maps.Clone(n.counters.transitions),
		Events:         maps.Clone(n.counters.events),
		CallbackPanics: n.counters.panics,
		CallbackDelays: n.counters.callbacks.snapshot(),
		Elections:      make([]ElectionStats, 0, len(n.elections)),

		Sessions: n.counters.sessions, SessionFailures: n.counters.sessionFailures,
		Heartbeats: n.counters.heartbeats.snapshot(), HeartbeatFailures: n.counters.heartbeatFailures,
		Vacancies: n.counters.vacancies.snapshot(),
	}
	if s := n.session; s != nil {
		stats.TrustRemaining = s.trust.remaining(math.MaxInt64)
		stats.Connected = stats.TrustRemaining > 0
	}
	now := n.clock.Now().Mono
	for _, e := range n.elections {
		counted := e.counters
		figures := ElectionStats{
			Role: e.role.Name(), State: e.State(),
			Attempts: counted.attempts, Terms: counted.terms, Failovers: counted.failovers, Losses: counted.losses,
		}
		// One look at the clocks, not one for each term: all that are trusted
		// are of this session.
		if term := e.current.Load(); stats.Connected && term != nil && term.session == n.session && !term.ended.Load() {
			figures.Term, figures.LeadingFor = term.number, now-term.beganAt
		}
		stats.Elections = append(stats.Elections, figures)
		stats.CallbacksWaiting += len(e.queue)
		if e.delivering {
			stats.OldestCallbackAge = max(stats.OldestCallbackAge, now-e.deliveringSince)
		}
	}
	return stats
}
