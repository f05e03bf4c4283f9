package tenure

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// RetryContext describes a series of failed attempts to a [RetryStrategy].
type RetryContext struct {
	Attempt   int           // how many attempts have failed in this cycle, from 1
	Elapsed   time.Duration // since the first attempt of this cycle began
	LastError error         // why the last one failed; ErrHeld if another leads
}

// RetryStrategy decides when to try again: to take a role that is held, and to
// open a session that was lost. Elections and reconnecting each keep their own
// count. It must be safe for concurrent use.
//
// News of a vacancy starts an attempt at once, whatever the strategy says; it
// governs only what happens when no news comes. A strategy that takes long
// delays its own election, or the next attempt to open a session, and nothing
// else; one that panics is asked again after a CheckInterval.
type RetryStrategy interface {
	// NextDelay returns how long to wait before the next attempt, and false to
	// give up: the election, or when reconnecting every election of the node,
	// stops.
	NextDelay(attempts RetryContext) (delay time.Duration, again bool)
}

// RetryFunc is a function as a [RetryStrategy].
type RetryFunc func(RetryContext) (time.Duration, bool)

// NextDelay calls the function.
func (f RetryFunc) NextDelay(attempts RetryContext) (time.Duration, bool) { return f(attempts) }

// ExponentialBackoff waits min(Base × Multiplier^(attempt−1), Max).
type ExponentialBackoff struct {
	Base       time.Duration // default 1 s
	Max        time.Duration // default 30 s
	Multiplier float64       // default 2
	Jitter     float64       // takes up to this part, 0 to 1, off each delay at random; default 0
}

// NextDelay implements [RetryStrategy].
func (b ExponentialBackoff) NextDelay(attempts RetryContext) (time.Duration, bool) {
	base, limit, multiplier := or(b.Base, time.Second), or(b.Max, 30*time.Second), or(b.Multiplier, 2)
	delay := float64(base) * math.Pow(multiplier, float64(max(attempts.Attempt, 1)-1))
	delay = min(delay, float64(limit))
	delay *= 1 - min(max(b.Jitter, 0), 1)*rand.Float64()
	return time.Duration(delay), true
}

// FixedInterval always waits the same time.
type FixedInterval struct {
	Interval time.Duration // default 5 s
}

// NextDelay implements [RetryStrategy].
func (f FixedInterval) NextDelay(RetryContext) (time.Duration, bool) {
	return or(f.Interval, 5*time.Second), true
}

// DecorrelatedJitter waits min(Max, random between Base and three times the
// previous delay), which spreads the attempts of many nodes. It keeps the
// previous delay, so each election and each node needs one of its own: give
// them a pointer to a new value.
type DecorrelatedJitter struct {
	Base time.Duration // default 1 s
	Max  time.Duration // default 30 s

	// Random returns a number in [0, 1); default math/rand.
	Random func() float64

	mu       sync.Mutex
	previous time.Duration
}

// NextDelay implements [RetryStrategy]. The first attempt of a cycle starts
// from Base again.
func (d *DecorrelatedJitter) NextDelay(attempts RetryContext) (time.Duration, bool) {
	base, limit := or(d.Base, time.Second), or(d.Max, 30*time.Second)
	random := d.Random
	if random == nil {
		random = rand.Float64
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if attempts.Attempt <= 1 || d.previous < base {
		d.previous = base
	}
	span := float64(3*d.previous) - float64(base)
	d.previous = min(limit, base+time.Duration(random()*span))
	return d.previous, true
}

// or returns value, or fallback if value is zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
