package cluster

import (
	"sync"
	"sync/atomic"
)

// InFlight counts units of work in flight and refuses new ones while the node
// drains. The zero value counts and refuses nothing; [Member.InFlight] returns
// a member's counter. It is safe for concurrent use and must not be copied.
type InFlight struct {
	// The count times two, plus one while draining. Both are in one word: no unit of work
	// can enter between a check and an update.
	word atomic.Int64

	mu   sync.Mutex
	idle chan struct{} // of the current drain: closed when nothing is in flight
}

const (
	draining = 1
	oneMore  = 2
)

// Guard represents one unit of work in flight. [InFlight.Enter] returns it.
type Guard struct {
	_      noCopy
	flight *InFlight
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Enter counts a unit of work until Done is called on the guard. While the node
// drains it returns false and counts nothing: refuse the work, or leave it to
// other nodes. Enter takes no lock and does not allocate.
func (f *InFlight) Enter() (Guard, bool) {
	for {
		word := f.word.Load()
		if word&draining != 0 {
			return Guard{}, false
		}
		if f.word.CompareAndSwap(word, word+oneMore) {
			return Guard{flight: f}, true
		}
	}
}

// Done ends the unit of work. Only the first call has an effect, and none on a guard
// refused by Enter. Done must not be called on a copy of the guard or concurrently; it
// panics if there are more calls than units of work.
func (g *Guard) Done() {
	flight := g.flight
	if flight == nil {
		return
	}
	g.flight = nil
	switch word := flight.word.Add(-oneMore); {
	case word < 0:
		flight.word.Add(oneMore)
		panic("cluster: Done was called on a copy of a Guard")
	case word == draining:
		flight.closeIdle()
	}
}

// Count returns the number of units of work in flight.
func (f *InFlight) Count() int { return int(f.word.Load() / oneMore) }

// Draining reports whether new work is refused.
func (f *InFlight) Draining() bool { return f.word.Load()&draining != 0 }

// drain refuses new work and returns a channel that is closed when no work is in flight.
// If work is accepted again first, the channel is never closed.
func (f *InFlight) drain() (idle <-chan struct{}) {
	f.mu.Lock()
	if f.word.Load()&draining == 0 {
		f.idle = make(chan struct{})
		f.word.Add(draining)
	}
	idle = f.idle
	f.mu.Unlock()
	f.closeIdle()
	return idle
}

// reopen accepts work again.
func (f *InFlight) reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word.Load()&draining != 0 {
		f.word.Add(-draining)
	}
}

// closeIdle closes the idle channel if nothing is in flight and the node still
// drains.
func (f *InFlight) closeIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word.Load() != draining {
		return
	}
	select {
	case <-f.idle:
	default:
		close(f.idle)
	}
}
