package sim

import "time"

// reunionCheck is how often a session that waits for nodes looks whether they are
// back.
const reunionCheck = 100 * time.Millisecond

// life records since when the server has kept its locks. The row of its unlogged table
// survives a clean restart; a crash and a promotion empty the table, and the first
// session after that inserts the row again.
type life struct {
	started     time.Duration // of the server's process
	born        time.Duration // when the row was made; -1 while there is none
	byMigration bool          // with the tables: no locks were lost before that
}

// forget handles the deletion of the row.
func (l *life) forget() { l.born, l.byMigration = -1, false }

// meet inserts the row for the first session.
func (l *life) meet(now time.Duration) {
	if l.born < 0 {
		l.born = now
	}
}

// up is when the server came back, the same for all candidates.
func (l *life) up() time.Duration { return max(l.started, l.born) }

// longestLease is that of all nodes in the registry.
func (s *server) longestLease() time.Duration {
	longest := time.Duration(0)
	for _, row := range s.nodes {
		longest = max(longest, row.lease)
	}
	return longest
}

// earliest is when the term of a role whose lock was acquired at locked may begin at
// the latest: after the time to settle if the last term did not end cleanly, and, on a
// server that may have lost the old leader's lock, one lease after the server came
// back.
func (b *backend) earliest(row *roleRow, locked time.Duration) time.Duration {
	return b.earliestFrom(row, locked, b.bornAt, b.upAt)
}

// earliestFrom is earliest for a row of the server that was inserted at born, on a
// server that came back at up.
func (b *backend) earliestFrom(row *roleRow, locked, born, up time.Duration) time.Duration {
	s, wait := b.server, max(b.timing.Lease, b.timing.FailoverWait)
	if row.term == 0 {
		if s.life.byMigration || s.defects.NoServerLag {
			return locked
		}
		return max(locked, born+max(wait, b.longest))
	}
	if row.server == s.started || s.defects.NoServerLag {
		return locked + b.settleAfter(row)
	}
	return max(locked, up+max(wait, b.settleAfter(row), row.lease, b.longest))
}

// settleAfter is the time to settle after the last term of a role.
func (b *backend) settleAfter(row *roleRow) time.Duration {
	if row.clean() {
		return 0
	}
	return b.timing.Settle
}

// decides is when the term of a role may begin, as far as is known now, or what a
// defect makes of it.
func (b *backend) decides(row *roleRow, locked time.Duration) time.Duration {
	s := b.server
	switch {
	case s.defects.WaitAnew:
		return b.earliestFrom(row, locked, locked, locked)
	case s.defects.LastHolder && row.term > 0 && row.node == b.node.ID:
		return locked
	case s.defects.WaitEarly:
		return b.earliestFrom(row, locked, b.bornAt, b.bornAt)
	}
	latest := b.earliest(row, locked)
	if row.term == 0 || row.server == s.started || !b.isRegistryComplete(row) {
		return latest
	}
	return min(latest, max(locked, s.reunitedAt())+max(b.settleAfter(row), b.clockDifference(row)))
}

// clockDifference is by how much the clock of a promoted standby may be behind that of the
// last term's server.
func (b *backend) clockDifference(row *roleRow) time.Duration {
	if row.server.timeline == b.server.started.timeline || b.server.defects.AnyClock {
		return 0
	}
	return b.timing.Margin
}

// isRegistryComplete reports whether the registry has every node that may trust an
// earlier session: on another timeline if only synchronous standbys are promoted.
func (b *backend) isRegistryComplete(row *roleRow) bool {
	s := b.server
	if !row.clean() && s.nodes[row.node] == nil {
		return false
	}
	if row.server.timeline == s.started.timeline || s.defects.AnyReunion {
		return true
	}
	return b.timing.SynchronousFailover && row.server.timeline < s.started.timeline
}

// reunitedAt is when the last node opened a session in this life of the server, or
// when the trust of one that did not ends.
func (s *server) reunitedAt() time.Duration {
	at := time.Duration(0)
	for _, row := range s.nodes {
		switch {
		case row.life == s.started:
			at = max(at, row.opened, s.away(row.trustUntil))
		case s.defects.NoReunion, s.defects.DeadReunion && row.dead:
		default:
			at = max(at, s.away(row.trustedUntil()))
		}
	}
	return at
}

// trustedUntil is until when a process may trust a session of the node.
func (r *nodeRow) trustedUntil() time.Duration {
	return max(r.trustUntil, r.lastHeartbeat+r.lease)
}
