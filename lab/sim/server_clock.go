package sim

import (
	"time"

	"github.com/exactly-one/tenure/internal/simcalls"
)

// The server has a wall clock, which an operator or a time service may set. Whatever the
// tables have is a time of that clock; what happens in the server takes the time that it
// takes.

// clockBase is what the clock shows at the beginning, so that it never shows a time that
// a row without a time has.
const clockBase = 10_000 * time.Hour

// clock is what the server's clock shows.
func (s *server) clock() time.Duration { return clockBase + s.world.now() + s.stepped }

// away converts a time of the server's clock.
func (s *server) away(at time.Duration) time.Duration { return s.world.now() + at - s.clock() }

// since is away for something that has happened: a time that is to come counts from now.
func (s *server) since(at time.Duration) time.Duration {
	if s.defects.FalseStart {
		return s.away(at)
	}
	return min(s.world.now(), s.away(at))
}

// step sets the clock of the server ahead of the true time, or behind.
func (s *server) step(offset time.Duration) {
	w := s.world
	by := offset - s.stepped
	s.stepped, s.steppedAt = offset, w.now()
	w.log("server", "the wall clock steps by %v", by)
	if by > 0 {
		w.checker.forwardUntil = w.now() + s.longestTrust()
	}
	s.clockSteps(by)
	s.ring()
}

// longestTrust is the longest lease and margin of all machines.
func (s *server) longestTrust() time.Duration {
	longest := time.Duration(0)
	for _, m := range s.world.machines {
		longest = max(longest, m.member.Config.Lease+m.member.Config.Margin)
	}
	return longest
}

// correctTimes makes heartbeats of a clock that was ahead heartbeats of now.
func (s *server) correctTimes() {
	if s.defects.FalseTimes {
		return
	}
	now, longest := s.clock(), s.longestLease()
	s.called(simcalls.Call{Kind: simcalls.Corrects})
	for _, row := range s.nodes {
		if row.lastHeartbeat > now+row.lease {
			row.lastHeartbeat, row.diedAt = now, min(row.diedAt, now)
		}
		if row.trustUntil > now+2*longest {
			row.trustUntil = now + longest
		}
	}
}

// stepClock steps the clock of the server now and then, and sets it right in the end.
func (s *storm) stepClock(rnd *stream) {
	s.world.after(rnd.rarely(2*s.lease), func() {
		if s.over {
			return
		}
		by := pick(rnd, rnd.between(0, s.lease), rnd.between(0, 10*s.lease), time.Hour, 8760*time.Hour)
		s.world.server.step(pick(rnd, 0, by, -by))
		s.stepClock(rnd)
	})
}
