package tenure

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// trust is the trust window of a session. It ends at a deadline on the
// monotonic or the wall clock, whichever comes first, or by a call of end; once
// ended it is never revived (Invariant 1).
//
// The end of trust cancels the contexts of the session's terms. It waits for no
// other lock, so contexts are canceled in time whatever the rest of the engine
// does.
type trust struct {
	clock     clocks.Clock
	onExpired func() // called on a new goroutine when the deadline has passed
	onEnd     func() // called once, by end, with mu held; or nil

	mono  atomic.Int64 // deadline in nanoseconds; 0 before the first heartbeat
	wall  atomic.Int64
	ended atomic.Bool

	mu    sync.Mutex // a leaf: held only for the fields below
	terms map[*Term]struct{}
	timer func() bool // stops the timer of the deadline
	cause error       // why trust ended; nil while it is valid
}

// begin starts the trust window when the first heartbeat is acknowledged.
func (t *trust) begin(until clocks.Instant) bool {
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return t.valid()
}

// extend moves the deadline, unless trust has ended.
func (t *trust) extend(until clocks.Instant) bool {
	if !t.valid() {
		return false
	}
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return !t.ended.Load()
}

// limitTrust returns when trust ends after an acknowledged heartbeat: until, or the limit
// of the session if earlier.
func limitTrust(conn Session, until clocks.Instant) clocks.Instant {
	limited, ok := conn.(interface{ TrustLimit() clocks.Instant })
	if !ok {
		return until
	}
	limit := limited.TrustLimit()
	until.Mono = min(until.Mono, limit.Mono)
	if limit.Wall.Before(until.Wall) {
		until.Wall = limit.Wall
	}
	return until
}

// valid reports whether trust has not ended. It neither locks nor allocates, except in the
// first call after the deadline.
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

// maySend reports whether the session may still send statements: while trust is
// valid, and before the first heartbeat, when the session holds no lock.
func (t *trust) maySend() bool {
	if t.mono.Load() == 0 {
		return !t.ended.Load()
	}
	return t.valid()
}

// watch checks the clocks at the deadline and at least once per tick, because
// the wall clock may jump.
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

// add puts a term under this trust. It returns false if trust has ended: at this moment a
// new term is either refused here or canceled by end.
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

// remove removes a term after its context was canceled.
func (t *trust) remove(term *Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.terms, term)
}

// end ends trust and then cancels the contexts of its terms. It returns the
// cause of the first call.
func (t *trust) end(cause error) error {
	t.ended.Store(true)
	t.mu.Lock()
	if t.cause == nil {
		t.cause = cause
		if t.onEnd != nil {
			t.onEnd()
		}
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

// deadline returns when trust ends, by each clock.
func (t *trust) deadline() clocks.Instant {
	return clocks.Instant{Mono: time.Duration(t.mono.Load()), Wall: time.Unix(0, t.wall.Load())}
}

// remaining returns the time until the nearer deadline, at least 0 and at most
// limit.
func (t *trust) remaining(limit time.Duration) time.Duration {
	if t.ended.Load() {
		return 0
	}
	now := t.clock.Now()
	mono := time.Duration(t.mono.Load()) - now.Mono
	wall := time.Duration(t.wall.Load() - now.Wall.UnixNano())
	return max(0, min(mono, wall, limit))
}
