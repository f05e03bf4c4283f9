// Package retry decides when to try again to acquire a role, also after work under a
// term has failed, or to open a session.
package retry

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Failure describes a series of failed attempts to a [Strategy].
type Failure struct {
	Attempt   int           // failed attempts in this series, from 1
	Elapsed   time.Duration // since the first attempt of this series
	LastError error         // of the last attempt or work; matches ErrHeld if another node leads
}

// Strategy decides when to try again to acquire a role or to open a
// session. Each election counts its own attempts, and so does reconnecting. It
// must be safe for concurrent use.
//
// A notification of a vacancy starts an attempt regardless of the strategy, except
// after failed work. A slow strategy delays only its own election, or the next
// attempt to open a session. If it panics, the next attempt follows after a
// CheckInterval.
type Strategy interface {
	// NextDelay returns the delay before the next attempt, or false to give up:
	// then the election stops or, when reconnecting, every election of the
	// node.
	NextDelay(failure Failure) (delay time.Duration, again bool)
}

// Func adapts a function to a [Strategy].
type Func func(Failure) (time.Duration, bool)

// NextDelay calls the function.
func (f Func) NextDelay(failure Failure) (time.Duration, bool) { return f(failure) }

// ExponentialBackoff waits min(Base × Multiplier^(attempt−1), Max).
type ExponentialBackoff struct {
	Base       time.Duration // default 1 s
	Max        time.Duration // default 30 s
	Multiplier float64       // default 2
	Jitter     float64       // random share, 0 to 1, that is taken off each delay; default 0
}

// NextDelay implements [Strategy].
func (b ExponentialBackoff) NextDelay(failure Failure) (time.Duration, bool) {
	base, limit, multiplier := cmp.Or(b.Base, time.Second), cmp.Or(b.Max, 30*time.Second), cmp.Or(b.Multiplier, 2)
	delay := float64(base) * math.Pow(multiplier, float64(max(failure.Attempt, 1)-1))
	delay = min(delay, float64(limit))
	delay *= 1 - min(max(b.Jitter, 0), 1)*rand.Float64()
	return duration(delay), true
}

// duration converts a number of nanoseconds, and limits it to the longest duration.
func duration(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}

// FixedInterval always waits for the same time.
type FixedInterval struct {
	Interval time.Duration // default 5 s
}

// NextDelay implements [Strategy].
func (f FixedInterval) NextDelay(Failure) (time.Duration, bool) {
	return cmp.Or(f.Interval, 5*time.Second), true
}

// DecorrelatedJitter waits min(Max, random between Base and three times the previous
// delay), and so spreads the attempts of many nodes. It stores the previous delay: give
// each election and each node a pointer to its own value.
type DecorrelatedJitter struct {
	Base time.Duration // default 1 s
	Max  time.Duration // default 30 s

	// Random returns a number in [0, 1); default math/rand.
	Random func() float64

	mu       sync.Mutex
	previous time.Duration
}

// NextDelay implements [Strategy]. The first attempt of a series starts
// from Base again.
func (d *DecorrelatedJitter) NextDelay(failure Failure) (time.Duration, bool) {
	base, limit := cmp.Or(d.Base, time.Second), cmp.Or(d.Max, 30*time.Second)
	random := d.Random
	if random == nil {
		random = rand.Float64
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if failure.Attempt <= 1 || d.previous < base {
		d.previous = base
	}
	span := 3*float64(d.previous) - float64(base)
	d.previous = min(limit, duration(float64(base)+random()*span))
	return d.previous, true
}
