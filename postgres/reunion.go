package postgres

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// After a restart, a crash or a failover the server has forgotten all locks, and the old
// leader may not have noticed yet. The next term waits until no node can trust an earlier
// session: until all nodes have opened new ones, or for a long enough time in any case.

// waitBefore decides when the term of a role may begin. Its lock was acquired at
// lockedAt.
func (s *session) waitBefore(row termRow, lockedAt time.Duration) termWait {
	timing := s.opening.Timing
	if row.term == 0 {
		// The role is new here. If the server has lost its locks, it may have lost the
		// row of the role too, and with it the leader's lease.
		if s.server.ByMigration {
			return termWait{until: lockedAt}
		}
		return termWait{until: max(lockedAt, s.server.BornAt+max(timing.Settle, timing.Lease, s.server.Longest, timing.FailoverWait))}
	}
	var settle time.Duration
	if !row.clean() || s.crashedSince(row) {
		settle = timing.Settle
	}
	if row.lineage == s.server.Lineage() && row.epoch == s.server.Epoch() {
		return termWait{until: lockedAt + settle}
	}
	return termWait{
		until:   max(lockedAt, s.waitsSince(row, lockedAt)+max(settle, timing.Lease, row.lease, s.server.Longest, timing.FailoverWait)),
		reunion: s.isRegistryComplete(row),
		after:   max(settle, s.clockDifference(row)),
	}
}

// clockDifference bounds how far the clock of this server is behind the last term's
// server's. Begins commit asynchronously, so a promoted standby may lack terms, although
// their numbers were used. No such term began later than the reunion. So once this time
// has passed since the reunion, this server's clock is ahead of every used number. The
// whole wait is longer: the old leader's trust ends a margin before its lease.
func (s *session) clockDifference(row termRow) time.Duration {
	if row.lineage == s.server.Lineage() {
		return 0
	}
	return s.opening.Timing.Margin
}

// waitsSince returns when the wait began, on another server than the last term's. It
// counts from the beginning of this server's life and not from lockedAt. Otherwise each
// candidate would repeat another one's wait.
//
// The old leader's trust ends one lease after the last heartbeat acknowledged by the
// earlier life of the server. That life was over when this one began: a restarted server
// starts after the processes of the earlier one are gone, and after a crash, or on a
// promoted replica, the first session inserts the row again.
//
// A promoted replica cannot know of a continuing old primary: FailoverWait is for this
// case. An old primary started again with its earlier data cannot know of the newer one:
// the wait counts from when this node came from there.
func (s *session) waitsSince(row termRow, lockedAt time.Duration) time.Duration {
	if s.isCopy(row) {
		return lockedAt // this server's life began at an unknown time
	}
	return s.server.UpAt
}

// isCopy reports whether this server was copied together with the row of its life.
func (s *session) isCopy(row termRow) bool {
	return row.lineage != s.server.Lineage() && !s.crashedSince(row)
}

// crashedSince reports whether the row of the server's life was lost after a term began.
// Then a later term may be lost too, because its begin was not durable yet. A stopped
// server loses neither.
func (s *session) crashedSince(row termRow) bool {
	return !strings.HasSuffix(row.epoch, "/"+s.server.ID.String())
}

// isRegistryComplete reports whether the registry has every node with possible trust in an
// earlier session, and its last acknowledged heartbeat:
//
//   - On the same timeline it has, because both are durable.
//   - After a promotion it has only if the operator declares that none but synchronous
//     standbys is promoted.
//   - It has not if the last leader has no row: an operator has deleted rows.
//   - It has not on an old primary that has returned: it lacks the nodes of the newer
//     one.
func (s *session) isRegistryComplete(row termRow) bool {
	if s.server.Returned || !row.clean() && !row.nodeKnown {
		return false
	}
	if row.lineage == s.server.Lineage() {
		return true
	}
	return s.opening.Timing.SynchronousFailover && !s.isCopy(row) && server.IsPromotionOf(row.lineage, s.server.Lineage())
}

const (
	// A waiting session is asked again when a node joins, and this often in case the
	// notification is lost. It reads the registry no more often than reunionPause, since
	// many nodes join at the same time.
	reunionCheck = 100 * time.Millisecond
	reunionPause = 10 * time.Millisecond
)

// endWaits ends waits early when all nodes are back: a node opens a session only after
// its trust in earlier ones has ended.
func (s *session) endWaits() error {
	now := s.opening.Clock.Now().Mono
	var waiting []*heldRole
	for _, held := range s.heldRoles {
		if held.term == 0 && held.examined && held.wait.reunion && held.wait.until > now {
			waiting = append(waiting, held)
		}
	}
	s.listener.nodesAwaited.Store(len(waiting) > 0) // before the registry is read
	if len(waiting) == 0 {
		return nil
	}
	if earliest := s.reunion.checkedAt + reunionPause; s.reunion.checkedAt > 0 && now < earliest {
		s.reunion.checkAt = earliest
		return nil
	}
	s.reunion.checkedAt = now
	var left float64
	err := s.query(stmtReunion, func(rows pgx.Rows) error {
		return rows.Scan(&left)
	}, s.server.Lineage(), s.server.Epoch())
	if err != nil {
		s.log.Warn("looking for nodes that have not reconnected failed; the terms wait longer", "error", err)
		s.reunion.checkAt = now + reunionCheck
		return lostOnly(err)
	}
	now = s.opening.Clock.Now().Mono
	if left > 0 {
		s.reunion.checkAt = now + min(reunionCheck, max(time.Millisecond, link.FromMilliseconds(left)))
		return nil
	}
	for _, held := range waiting {
		held.wait = termWait{until: min(held.wait.until, now+held.wait.after)}
	}
	s.listener.nodesAwaited.Store(false)
	return nil
}

// retryIn returns when to look again whether the wait before the term of a role is
// over.
func (s *session) retryIn(held *heldRole, now time.Duration) time.Duration {
	left := held.wait.until - now
	if held.wait.reunion {
		left = max(time.Millisecond, min(left, s.reunion.checkAt-now))
	}
	return left
}
