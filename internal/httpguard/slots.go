package httpguard

import "sync"

// Slots bounds what is open at a time, in all and from one address, so that no
// client takes the places of all others. It is safe for concurrent use.
type Slots struct {
	all, each int

	mu   sync.Mutex
	open int
	from map[string]int
}

// NewSlots returns slots for so many in all and so many from each address.
func NewSlots(all, each int) *Slots { return &Slots{all: all, each: each, from: map[string]int{}} }

// Take takes a slot if there is one for the address. Call release once when it is
// free again.
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

// Open is how many are taken.
func (s *Slots) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
