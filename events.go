package tenure

import (
	"fmt"
	"time"
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
// ended and contexts are canceled, if the event implies it. A panic of fn is
// caught, logged, and passed to the error callbacks.
func (e *Election) OnEvent(fn func(Event)) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	// A copy: queued events keep the functions that they were posted with.
	e.callbacks = append(e.callbacks[:len(e.callbacks):len(e.callbacks)], fn)
}

func (e *Election) on(kind EventKind, fn func(Event)) {
	e.OnEvent(func(event Event) {
		if event.Kind == kind {
			fn(event)
		}
	})
}

// OnAcquired registers a function that is called when a term has begun, except
// after a recovery within the reconnect grace. See [Election.OnEvent].
func (e *Election) OnAcquired(fn func(*Term)) {
	e.on(EventAcquired, func(event Event) { fn(event.Term) })
}

// OnReleased registers a function that is called when the leader gave up a term
// and the role is free. See [Election.OnEvent].
func (e *Election) OnReleased(fn func(*Term)) {
	e.on(EventReleased, func(event Event) { fn(event.Term) })
}

// OnLost registers a function that is called with the reason when a term was
// lost. With a reconnect grace, it is called when the grace has ended. See
// [Election.OnEvent].
func (e *Election) OnLost(fn func(*Term, error)) {
	e.on(EventLost, func(event Event) { fn(event.Term, event.Err) })
}

// OnAcquireFailed registers a function that is called when an attempt failed.
// The error matches ErrHeld if another node leads. See [Election.OnEvent].
func (e *Election) OnAcquireFailed(fn func(error)) {
	e.on(EventAcquireFailed, func(event Event) { fn(event.Err) })
}

// OnStateChange registers a function that is called at each change of state.
// See [Election.OnEvent].
func (e *Election) OnStateChange(fn func(from, to State)) {
	e.on(EventStateChange, func(event Event) { fn(event.From, event.To) })
}

// OnError registers a function that is called with errors that no call returns:
// database errors, and panics of other callbacks. See [Election.OnEvent].
func (e *Election) OnError(fn func(error)) {
	e.on(EventError, func(event Event) { fn(event.Err) })
}

// OnStopped registers a function that is called when the election has stopped.
// See [Election.OnEvent].
func (e *Election) OnStopped(fn func()) {
	e.on(EventStopped, func(Event) { fn() })
}

// delivery is an event with the functions that were registered when it happened.
type delivery struct {
	event     Event
	callbacks []func(Event)
	posted    time.Duration // on the node's monotonic clock
}

// postLocked queues an event.
func (e *Election) postLocked(event Event) {
	e.node.counters.events[event.Kind]++
	if len(e.callbacks) == 0 {
		return
	}
	now := e.node.clock.Now()
	event.At, event.Role = now.Wall, e.role
	e.queue = append(e.queue, delivery{event, e.callbacks, now.Mono})
	if !e.delivering {
		e.delivering, e.deliveringSince = true, now.Mono
		e.node.group.Add(1)
		go e.deliver() // exits when the queue is empty; Close waits through n.group
	}
}

// deliver calls the callbacks of queued events until the queue is empty.
func (e *Election) deliver() {
	n := e.node
	defer n.group.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(e.queue) > 0 {
		next := e.queue[0]
		e.queue = e.queue[1:]
		e.deliveringSince = next.posted
		n.mu.Unlock()
		for _, callback := range next.callbacks {
			e.call(callback, next.event)
		}
		n.mu.Lock()
		n.counters.callbacks.add(n.clock.Now().Mono - next.posted)
	}
	e.queue, e.delivering = nil, false
}

func (e *Election) call(callback func(Event), event Event) {
	defer func() {
		reason := recover()
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
	}()
	callback(event)
}
