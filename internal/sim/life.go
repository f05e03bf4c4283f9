package sim

import (
	"time"

	"github.com/exactly-one/tenure/history"
)

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

// earliest is when the term of a role whose lock was acquired at locked may begin: after
// the time to settle if the last term did not end cleanly, and, on a server that may
// have lost the old leader's lock, one lease after the server came back.
func (b *backend) earliest(row *roleRow, locked time.Duration) time.Duration {
	return b.earliestFrom(row, locked, b.server.life.born, b.server.life.up())
}

// earliestFrom is earliest for a row of the server that was made at born, on a
// server that came back at up.
func (b *backend) earliestFrom(row *roleRow, locked, born, up time.Duration) time.Duration {
	s, wait := b.server, max(b.timing.Lease, b.timing.FailoverWait)
	if row.term == 0 {
		if s.life.byMigration || s.defects.NoServerLag {
			return locked
		}
		return max(locked, born+max(wait, b.longest))
	}
	settle := time.Duration(0)
	switch row.reason {
	case history.EndCrashed, history.EndLeaseExpired, history.EndServerChanged:
		settle = b.timing.Settle
	}
	switch {
	case row.server == s.started || s.defects.NoServerLag:
		return locked + settle
	case row.node == b.node.ID && row.server.timeline == s.started.timeline:
		return locked // its old work has returned, or it would not campaign
	default:
		return max(locked, up+max(wait, settle, row.lease))
	}
}

// decides is earliest, or what a defect makes of it.
func (b *backend) decides(row *roleRow, locked time.Duration) time.Duration {
	s := b.server
	switch {
	case s.defects.WaitAnew:
		return b.earliestFrom(row, locked, locked, locked)
	case s.defects.WaitEarly:
		return b.earliestFrom(row, locked, s.life.born, s.life.born)
	default:
		return b.earliest(row, locked)
	}
}
