package tenure

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/usercode"
)

// EventKind is the kind of an [Event].
type EventKind string

// Kinds of events.
const (
	EventStateChange   EventKind = "state_change"
	EventAcquired      EventKind = "acquired"
	EventReleased      EventKind = "released"
	EventLost          EventKind = "lost"
	EventAcquireFailed EventKind = "acquire_failed"
	EventError         EventKind = "error"
	EventStopped       EventKind = "stopped"
)

// Event is something that happened to an election.
type Event struct {
	Kind     EventKind
	At       time.Time // by the node's wall clock
	Role     Role
	Term     *Term // nil if the event belongs to no term
	From, To State // of a state change
	Err      error // of lost, acquire_failed and error: the reason
}

// OnEvent registers fn for every event of the election. A goroutine of the node
// calls the functions one at a time, in the order of the events and, for each
// event, in the order of their registration. A slow function delays later calls
// and [Node.Close], but never a heartbeat. When fn is called, trust has already
// ended and contexts are canceled, if the event implies it. A panic of fn, or a
// call of runtime.Goexit, is caught, logged, and passed to the error callbacks.
func (e *Election) OnEvent(fn func(Event)) {
	q := &e.events
	q.Lock()
	defer q.Unlock()
	// A copy: queued events keep their own functions.
	q.callbacks = append(q.callbacks[:len(q.callbacks):len(q.callbacks)], fn)
}

func (e *Election) on(kind EventKind, fn func(Event)) {
	e.OnEvent(func(event Event) {
		if event.Kind == kind {
			fn(event)
		}
	})
}

// OnAcquired registers a function to call when a term has begun, except after a recovery
// within the reconnect grace. See [Election.OnEvent].
func (e *Election) OnAcquired(fn func(*Term)) {
	e.on(EventAcquired, func(event Event) { fn(event.Term) })
}

// OnReleased registers a function to call when the leader gave up a term and the role is
// free. See [Election.OnEvent].
func (e *Election) OnReleased(fn func(*Term)) {
	e.on(EventReleased, func(event Event) { fn(event.Term) })
}

// OnLost registers a function to call with the reason when a term was lost. With a
// reconnect grace, it is called when the grace has ended. See [Election.OnEvent].
func (e *Election) OnLost(fn func(*Term, error)) {
	e.on(EventLost, func(event Event) { fn(event.Term, event.Err) })
}

// OnAcquireFailed registers a function to call when an attempt failed. The error matches
// ErrHeld if another node leads. See [Election.OnEvent].
func (e *Election) OnAcquireFailed(fn func(error)) {
	e.on(EventAcquireFailed, func(event Event) { fn(event.Err) })
}

// OnStateChange registers a function to call at each change of state. See
// [Election.OnEvent].
func (e *Election) OnStateChange(fn func(from, to State)) {
	e.on(EventStateChange, func(event Event) { fn(event.From, event.To) })
}

// OnError registers a function to call with errors not returned by a call: database
// errors, and panics of other callbacks. See [Election.OnEvent].
func (e *Election) OnError(fn func(error)) {
	e.on(EventError, func(event Event) { fn(event.Err) })
}

// OnStopped registers a function to call when the election has stopped. See
// [Election.OnEvent].
func (e *Election) OnStopped(fn func()) {
	e.on(EventStopped, func(Event) { fn() })
}

// delivery is an event with the functions registered when it happened.
type delivery struct {
	event     Event
	callbacks []func(Event)
	posted    time.Duration // on the node's monotonic clock
}

// nodeMutex is the type of Node.mu. Its Unlock releases the events posted under it. So a
// callback never runs before the change behind its event is complete.
type nodeMutex struct {
	sync.Mutex
	posted []*Election // that have events to release
}

// Unlock releases the events and unlocks the mutex.
func (m *nodeMutex) Unlock() {
	if len(m.posted) > 0 {
		m.releaseEvents()
	}
	m.Mutex.Unlock()
}

// fewEvents is for how many elections Unlock starts the goroutines itself.
const fewEvents = 16

// releaseEvents starts to deliver the posted events.
func (m *nodeMutex) releaseEvents() {
	idle := slices.DeleteFunc(m.posted, func(e *Election) bool { return !e.events.release() })
	for _, e := range idle {
		e.node.group.Add(1)
	}
	// Each goroutine exits when no event waits; Close waits through n.group.
	if len(idle) <= fewEvents {
		for _, e := range idle {
			go e.deliver()
		}
		m.posted = m.posted[:0]
		return
	}
	// The session has other work than to start thousands of goroutines.
	m.posted = nil
	go func() { // exits when it has started the others
		for _, e := range idle {
			go e.deliver()
		}
	}()
}

// eventQueue has the callbacks of an election and the events for them.
type eventQueue struct {
	sync.Mutex // a leaf: held only for the fields below
	callbacks  []func(Event)
	waiting    []delivery
	unreleased int // the last of those waiting: Node.mu has not been unlocked since
	delivering bool
	since      time.Duration // while delivering: when the current event was posted, on the monotonic clock
}

// postLocked queues an event.
func (e *Election) postLocked(event Event) {
	n, q := e.node, &e.events
	n.counters.events[event.Kind]++
	q.Lock()
	defer q.Unlock()
	if len(q.callbacks) == 0 {
		return
	}
	now := n.clock.Now()
	event.At, event.Role = now.Wall, e.role
	q.waiting = append(q.waiting, delivery{event, q.callbacks, now.Mono})
	if q.unreleased++; q.unreleased == 1 {
		n.mu.posted = append(n.mu.posted, e)
	}
}

// release permits the delivery of the posted events, and reports whether a goroutine must
// be started to deliver them.
func (q *eventQueue) release() (start bool) {
	q.Lock()
	defer q.Unlock()
	q.unreleased = 0
	if q.delivering {
		return false
	}
	q.delivering, q.since = true, q.waiting[0].posted
	return true
}

// deliver calls the callbacks of queued events until none waits. It does not take Node.mu:
// the session would wait for the mutex behind the events of thousands of elections.
func (e *Election) deliver() {
	n := e.node
	defer n.group.Done()
	for {
		next, found := e.events.take()
		if !found {
			return
		}
		for _, callback := range next.callbacks {
			e.call(callback, next.event)
		}
		n.callbackDelays.record(n.clock.Now().Mono - next.posted)
	}
}

// take returns the next event, or marks the end of the goroutine if there is none.
func (q *eventQueue) take() (next delivery, found bool) {
	q.Lock()
	defer q.Unlock()
	if len(q.waiting) == q.unreleased {
		q.delivering = false
		if len(q.waiting) == 0 {
			q.waiting = nil
		}
		return delivery{}, false
	}
	next = q.waiting[0]
	q.waiting = q.waiting[1:]
	q.since = next.posted
	return next, true
}

// undelivered returns the number of waiting events, and the age of the oldest one with a
// callback that has not returned.
func (q *eventQueue) undelivered(now time.Duration) (waiting int, age time.Duration) {
	q.Lock()
	defer q.Unlock()
	if q.delivering {
		age = now - q.since
	}
	return len(q.waiting), age
}

func (e *Election) call(callback func(Event), event Event) {
	reason, _ := usercode.Call(func() { callback(event) })
	if reason == nil {
		return
	}
	err := fmt.Errorf("a callback of %s panicked on %q: %v", e.role, event.Kind, reason)
	e.node.log.Error("callback panicked", "role", e.role.Name(), "event", event.Kind, "error", err)
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.node.counters.panics++
	if event.Kind == EventError {
		return // no event: an error callback that panics would be called forever
	}
	e.postLocked(Event{Kind: EventError, Term: event.Term, Err: err})
}
