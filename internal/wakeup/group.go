package wakeup

import "sync"

// closed is the channel of a wait that is over before it begins.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Group counts goroutines, and lets others wait for their ends. It is for goroutines that
// can start after a wait has begun or has been given up: the count of a sync.WaitGroup may
// not rise from zero then.
type Group struct {
	mu    sync.Mutex // a leaf
	count int
	idle  chan struct{} // closed when the count falls to zero; nil unless something waits
}

// Add adds n to the count of goroutines.
func (g *Group) Add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count += n; g.count < 0 {
		panic("wakeup: more goroutines of the group have ended than were started")
	}
	if g.count == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Done records the end of a goroutine.
func (g *Group) Done() { g.Add(-1) }

// Go runs fn on a goroutine of the group.
func (g *Group) Go(fn func()) {
	g.Add(1)
	go func() { // exits when fn returns
		defer g.Done()
		fn()
	}()
}

// Idle returns a channel that is closed as soon as no goroutine of the group runs.
func (g *Group) Idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count == 0 {
		return closed
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

// Wait returns as soon as no goroutine of the group runs.
func (g *Group) Wait() { <-g.Idle() }
