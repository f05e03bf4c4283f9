package tenure

import (
	"sync/atomic"
	"time"
)

// trust is the time for which a session may believe in its own terms. It ends
// at a deadline, on the monotonic or the wall clock, whichever comes first, or
// when it is told to; once ended it is never revived (Invariant 1).
type trust struct {
	clock   Clock
	expired func() // called once, on a goroutine of its own, if a reader finds the deadline passed

	mono  atomic.Int64 // deadline in nanoseconds; 0 before the first heartbeat
	wall  atomic.Int64
	ended atomic.Bool
}

// begin starts the trust window with the first acknowledged heartbeat.
func (t *trust) begin(until Instant) bool {
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return t.standing()
}

// extend moves the deadline, unless trust has ended.
func (t *trust) extend(until Instant) bool {
	if !t.standing() {
		return false
	}
	t.wall.Store(until.Wall.UnixNano())
	t.mono.Store(int64(until.Mono))
	return !t.ended.Load()
}

// standing reports whether trust still runs. It neither locks nor allocates,
// but for the one call that finds it over.
func (t *trust) standing() bool {
	if t.ended.Load() {
		return false
	}
	now := t.clock.Now()
	if int64(now.Mono) < t.mono.Load() && now.Wall.UnixNano() < t.wall.Load() {
		return true
	}
	if t.ended.CompareAndSwap(false, true) {
		t.clock.AfterFunc(0, t.expired)
	}
	return false
}

// maySend reports whether the session may still send: while trust stands, and
// before its first heartbeat, when nothing is held yet.
func (t *trust) maySend() bool {
	if t.mono.Load() == 0 {
		return !t.ended.Load()
	}
	return t.standing()
}

// end ends trust.
func (t *trust) end() { t.ended.Store(true) }

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
