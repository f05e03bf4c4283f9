package httpguard

import "testing"

// TestSlotsBoundTheTotalAndEachAddress: one address cannot take all, and what is released can be taken again.
func TestSlotsBoundTheTotalAndEachAddress(t *testing.T) {
	t.Parallel()
	s := NewSlots(5, 3)
	take := func(address string, want bool) (release func()) {
		t.Helper()
		release, ok := s.Take(address)
		if ok != want {
			t.Fatalf("%s: %v with %d open", address, ok, s.Open())
		}
		return release
	}
	first := take("a", true)
	take("a", true)
	take("a", true)
	take("a", false)
	take("b", true)
	last := take("b", true)
	take("c", false)
	first()
	take("c", true)
	take("a", false) // all are taken
	last()
	take("a", true)
	if s.Open() != 5 || len(s.from) != 3 {
		t.Errorf("%d open of %v", s.Open(), s.from)
	}
}
