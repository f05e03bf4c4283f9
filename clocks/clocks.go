// Package clocks defines the time as a node sees it.
package clocks

import "time"

// Instant is a moment on two clocks. The monotonic reading counts from an
// arbitrary start and never jumps; the wall reading continues while a machine
// is suspended. A trust window ends on whichever comes first.
type Instant struct {
	Mono time.Duration // since an arbitrary start
	Wall time.Time
}

// Add returns the moment d later on both clocks, or earlier if d is negative.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: i.Mono + d, Wall: i.Wall.Add(d)}
}

// Clock is the time as one node sees it. Tests use it to stop a node or to
// change its wall clock; production code leaves it unset. It must be safe for
// concurrent use. The engine calls it with its mutex held: no method may block
// or call the node.
type Clock interface {
	// Now returns the current moment. It must not block or allocate.
	Now() Instant
	// AfterFunc calls f on its own goroutine after d on the monotonic clock.
	// The returned function stops the call and reports whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{ start time.Time }

// System returns the clock of this machine.
func System() Clock { return systemClock{time.Now()} }

func (c systemClock) Now() Instant {
	now := time.Now()
	return Instant{Mono: now.Sub(c.start), Wall: now}
}

func (c systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
