package httpguard

import "sync"

// Slots limits how many streams or connections are open at a time, in total and from one
// address: no client can use up the slots of all others. It is safe for concurrent use.
type Slots struct {
	all, each int

	// Guarded by mu.
	mu   sync.Mutex
	open int
	from map[string]int
}

// NewSlots returns slots for at most all in total and each from one address.
func NewSlots(all, each int) *Slots { return &Slots{all: all, each: each, from: map[string]int{}} }

// Take takes a slot if there is one for the address. The caller must call release
// once.
func (s *Slots) Take(address string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.all || s.from[address] >= s.each {
		return nil, false
	}
	s.open++
	s.from[address]++
	return func() { s.release(address) }, true
}

func (s *Slots) release(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.from[address]--; s.from[address] == 0 {
		delete(s.from, address)
	}
}

// Open returns how many slots are taken.
func (s *Slots) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
