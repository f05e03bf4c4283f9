package postgres

import "time"

// fenced records a transaction of another session in the way of a role's term, and
// returns when to try again.
func (s *session) fenced(held *heldRole) time.Duration {
	const first, longest = 2 * time.Millisecond, 50 * time.Millisecond
	now := s.opening.Clock.Now().Mono
	since := s.blockedSince(held, now)
	delay := min(longest, first<<min(held.skipped, 10))
	held.skipped++
	if now-since >= s.opening.Timing.FenceTimeout {
		s.terminator.end(held.role.Name(), held.previous)
	}
	return delay
}

// blockage is since when, on the node's monotonic clock, transactions have kept
// the term after this one from beginning.
type blockage struct {
	term  int64
	since time.Duration
}

// blockedSince returns since when transactions have prevented a role's next term. A new
// term restarts the count. A new attempt after an abandoned one does not, whichever
// session held the lock in between.
func (s *session) blockedSince(held *heldRole, now time.Duration) time.Duration {
	role := held.role.Name()
	b, found := s.blocked[role]
	if !found || b.term != held.previous {
		b = blockage{held.previous, now}
		s.blocked[role] = b
	}
	return b.since
}
