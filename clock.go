package tenure

import "time"

// Instant is one moment on two clocks. The monotonic reading counts from an
// arbitrary start and never steps; the wall reading goes on while a machine is
// suspended. A trust window ends on whichever comes first.
type Instant struct {
	Mono time.Duration // since an arbitrary start
	Wall time.Time
}

// Add returns the moment d later, or earlier if d is negative, on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: i.Mono + d, Wall: i.Wall.Add(d)}
}

// Clock is the time as one node sees it. It exists so that tests can stop a
// node, or step its wall clock; production code leaves it unset. It must be
// safe for concurrent use. The engine calls it under its own mutex: no method
// may block or call the node.
type Clock interface {
	// Now returns the present moment. It must not block or allocate.
	Now() Instant
	// AfterFunc calls f on its own goroutine after d on the monotonic clock,
	// unless the returned function is called first; that reports whether it
	// prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{ start time.Time }

// SystemClock returns the clock of this machine.
func SystemClock() Clock { return systemClock{time.Now()} }

func (c systemClock) Now() Instant {
	now := time.Now()
	return Instant{Mono: now.Sub(c.start), Wall: now}
}

func (c systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
