//go:build unix

package guardian

import (
	"syscall"
	"testing"
	"time"
)

// at is a moment some time after an arbitrary start.
func at(d time.Duration) moment { return moment(time.Hour).add(d) }

// The guardian kills everything before trust ends, or earlier when the grace
// period ends.
func TestGuardianKillsBeforeTrustEnds(t *testing.T) {
	trust := at(10 * time.Second)
	limits := limits{Grace: 3 * time.Second, Lead: time.Second}
	for name, test := range map[string]struct{ graceTo, killAt, stopAt moment }{
		"while it need not end":         {0, at(9 * time.Second), at(7 * time.Second)},
		"asked to end long before":      {at(5 * time.Second), at(5 * time.Second), at(7 * time.Second)},
		"asked to end too late to wait": {at(11 * time.Second), at(9 * time.Second), at(7 * time.Second)},
	} {
		g := &guardian{limits: limits, trust: trust, graceTo: test.graceTo}
		if got := g.killAt(); got != test.killAt {
			t.Errorf("invariant 4: %s: kills %v before the end of trust, not %v", name, trust.sub(got), trust.sub(test.killAt))
		}
		if got := g.stopAt(); got != test.stopAt {
			t.Errorf("%s: asks %v before the end of trust, not %v", name, trust.sub(got), trust.sub(test.stopAt))
		}
	}
}

// The supervisor kills a late guardian before trust ends, or at the earliest of
// its other limits.
func TestSupervisorKillsLateGuardian(t *testing.T) {
	trust := at(10 * time.Second)
	for name, test := range map[string]struct{ limit, killAt moment }{
		"no other limit":   {0, at(9500 * time.Millisecond)},
		"an earlier limit": {at(2 * time.Second), at(2 * time.Second)},
		"a later limit":    {at(20 * time.Second), at(9500 * time.Millisecond)},
	} {
		s := &supervisor{command: Command{Lead: time.Second}, trust: trust, limit: test.limit}
		if got := s.killAt(); got != test.killAt {
			t.Errorf("invariant 4: %s: kills the guardian %v before the end of trust, not %v", name, trust.sub(got), trust.sub(test.killAt))
		}
	}
	s := &supervisor{}
	s.limitTo(time.Minute)
	first := s.limit
	if s.limitTo(time.Hour); s.limit != first {
		t.Error("invariant 4: a later limit takes the place of an earlier one")
	}
	if s.limitTo(time.Second); s.limit >= first {
		t.Error("invariant 4: an earlier limit does not count")
	}
}

// A second request to end does not extend the grace period.
func TestSecondRequestKeepsTheDeadline(t *testing.T) {
	g := &guardian{limits: limits{Grace: time.Second}, exited: true}
	g.stop(syscall.SIGTERM, time.Second)
	first := g.graceTo
	for now() == first.add(-time.Second) {
	}
	if g.stop(syscall.SIGTERM, time.Second); g.graceTo != first {
		t.Errorf("invariant 4: the second request to end gives %v more", g.graceTo.sub(first))
	}
}
