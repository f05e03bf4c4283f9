package sim

import (
	"math"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// guard is a node whose heartbeats check another session: the session belongs to one of
// the nodes before it in the ring, and nothing disturbs the guard.
type guard struct{ by, of *backend }

// followGuards records since when each node has been a guard.
func (v *vacancies) followGuards(alive []*Process) {
	s, now := v.world.server, v.world.now()
	before := v.guards
	v.guards = map[guard]time.Duration{}
	for _, p := range alive {
		by := s.backendOf(p.machine)
		if by == nil || v.disturbed[p] == now {
			continue
		}
		for i, row := range s.predecessors(by) {
			if g := (guard{by, row.session}); i < nearest && row.session != nil {
				v.guards[g] = now
				if since, was := before[g]; was {
					v.guards[g] = since
				}
			}
		}
	}
}

// guarded is until when a session may keep its locks although no watch sees it: its
// guards look at every heartbeat.
func (v *vacancies) guarded(b *backend) time.Duration {
	earliest := time.Duration(math.MaxInt64)
	for g, since := range v.guards {
		if g.of == b {
			due := max(since, b.beatAt+b.timing.Lease+g.by.timing.Margin)
			earliest = min(earliest, due+g.by.timing.RefreshInterval+g.by.timing.RefreshInterval/10)
		}
	}
	return earliest
}

// isGuarded reports whether a guard checks the session that holds the lock of a role.
func (v *vacancies) isGuarded(role string) bool {
	s := v.world.server
	l := s.locks[s.roleLock(tenure.NamedRole(role))]
	return l == nil || v.guarded(l.holder) < math.MaxInt64
}

// looksForStrangers reports whether a watch works that looks for sessions without a row.
// Session connections do not look for them.
func (v *vacancies) looksForStrangers() bool {
	return slices.ContainsFunc(v.world.server.backends, func(b *backend) bool {
		p, m := b.client.process, b.client.process.machine
		return !b.ended && !p.crashed && !p.paused() && !p.isHeldUp() && !m.watchClosed && !m.watchUp.isDisturbed() && !m.watchDown.isDisturbed() &&
			b.looksForStrangers()
	})
}
