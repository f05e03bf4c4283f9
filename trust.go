package tenure

import (
	"sync"
	"sync/atomic"
	"time"
)

// trust is the time for which a session may believe in its own terms. It ends
// at a deadline, on the monotonic or the wall clock, whichever comes first, or
// when it is told to; once ended it is never revived (Invariant 1).
//
// The end of trust cancels the contexts of the session's terms. It needs no
// lock under which anything else is done: whatever the rest of the engine waits
// for, work learns in time that its term is over.
type trust struct {
	clock   Clock
	onExpired func() // called on a goroutine of its own when the deadline has passed

	mono  atomic.Int64 // deadline in nanoseconds; 0 before the first heartbeat
	wall  atomic.Int64
	ended atomic.Bool

	mu    sync.Mutex // a leaf: only the fields below are touched under it
	terms map[*Term]struct{}
	timer func() bool // stops the timer of the deadline
	cause error       // why trust ended, once contexts are canceled
}

// begin starts the trust window with the first acknowledged heartbeat.
func (t *trust) begin(until Instant) bool {
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return t.valid()
}

// extend moves the deadline, unless trust has ended.
func (t *trust) extend(until Instant) bool {
	if !t.valid() {
		return false
	}
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return !t.ended.Load()
}

// valid reports whether trust still runs. It neither locks nor allocates,
// but for the one call that finds it over.
func (t *trust) valid() bool {
	if t.ended.Load() {
		return false
	}
	now := t.clock.Now()
	if int64(now.Mono) < t.mono.Load() && now.Wall.UnixNano() < t.wall.Load() {
		return true
	}
	if t.ended.CompareAndSwap(false, true) {
		t.clock.AfterFunc(0, t.onExpired)
	}
	return false
}

// maySend reports whether the session may still send: while trust stands, and
// before its first heartbeat, when nothing is held yet.
func (t *trust) maySend() bool {
	if t.mono.Load() == 0 {
		return !t.ended.Load()
	}
	return t.valid()
}

// watch looks at the clocks at the deadline and once per tick, because the wall
// clock may jump.
func (t *trust) watch(tick time.Duration) {
	stop := t.clock.AfterFunc(t.remaining(tick), func() {
		if t.valid() {
			t.watch(tick)
		} else {
			t.onExpired()
		}
	})
	t.mu.Lock()
	over := t.cause != nil
	t.timer = stop
	t.mu.Unlock()
	if over {
		stop()
	}
}

// add puts a term under this trust and reports whether there is any: a term
// that begins while trust ends is either refused or canceled.
func (t *trust) add(term *Term) bool {
	if !t.valid() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.Load() {
		return false
	}
	if t.terms == nil {
		t.terms = map[*Term]struct{}{}
	}
	t.terms[term] = struct{}{}
	return true
}

// remove takes out a term whose context is canceled.
func (t *trust) remove(term *Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.terms, term)
}

// end ends trust, then cancels the contexts of its terms, in this order. It
// returns the cause of the first call.
func (t *trust) end(cause error) error {
	t.ended.Store(true)
	t.mu.Lock()
	if t.cause == nil {
		t.cause = cause
	}
	cause = t.cause
	terms, stop := t.terms, t.timer
	t.terms, t.timer = nil, nil
	t.mu.Unlock()
	for term := range terms {
		term.cancel(cause)
	}
	if stop != nil {
		stop()
	}
	return cause
}

// remaining is the time until the nearer deadline, at most limit, at least 0.
func (t *trust) remaining(limit time.Duration) time.Duration {
	if t.ended.Load() {
		return 0
	}
	now := t.clock.Now()
	mono := time.Duration(t.mono.Load()) - now.Mono
	wall := time.Duration(t.wall.Load() - now.Wall.UnixNano())
	return max(0, min(mono, wall, limit))
}
