package cluster

import (
	"sync"
	"sync/atomic"
)

// InFlight counts the pieces of work in flight and refuses new ones while the
// node drains. The zero value counts and refuses nothing; see [Member.InFlight]
// for that of a member. It is safe for concurrent use and must not be copied.
type InFlight struct {
	// The count times two, plus one while draining: one word, so that no work
	// slips in between the two.
	word atomic.Int64

	mu   sync.Mutex
	idle chan struct{} // of the present drain: closed when nothing is in flight
}

const (
	draining = 1
	oneMore  = 2
)

// Guard is one piece of work in flight. Obtain it with [InFlight.Enter].
type Guard struct {
	_      noCopy
	flight *InFlight
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Enter counts a piece of work until the guard's Done. It reports false, and
// counts nothing, while the node drains: refuse the work, or leave it to other
// nodes. It takes no lock and allocates nothing.
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

// Done says that the work has ended. Only the first call counts; that of a
// guard that Enter refused does nothing. It must not be called on a copy of the
// guard, nor by two goroutines at once; it panics if there were more calls than
// pieces of work.
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
		flight.settle()
	}
}

// Count returns how many pieces of work are in flight.
func (f *InFlight) Count() int { return int(f.word.Load() / oneMore) }

// Draining reports whether new work is refused.
func (f *InFlight) Draining() bool { return f.word.Load()&draining != 0 }

// drain refuses new work and returns a channel that is closed when nothing is
// in flight, or never if work is taken again before that.
func (f *InFlight) drain() (idle <-chan struct{}) {
	f.mu.Lock()
	if f.word.Load()&draining == 0 {
		f.idle = make(chan struct{})
		f.word.Add(draining)
	}
	idle = f.idle
	f.mu.Unlock()
	f.settle()
	return idle
}

// reopen takes work again.
func (f *InFlight) reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word.Load()&draining != 0 {
		f.word.Add(-draining)
	}
}

// settle notices that nothing is in flight, unless work is being taken again.
func (f *InFlight) settle() {
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
