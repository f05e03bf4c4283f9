package postgres

import "time"

// fenced records that another session's transaction prevents a role's term from
// beginning, and returns when to try again.
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

// blockedSince returns since when a role's next term has been prevented from
// beginning. An attempt that is abandoned and made again does not restart the count,
// whichever session held the lock in between; a new term does.
func (s *session) blockedSince(held *heldRole, now time.Duration) time.Duration {
	role := held.role.Name()
	b, found := s.blocked[role]
	if !found || b.term != held.previous {
		b = blockage{held.previous, now}
		s.blocked[role] = b
	}
	return b.since
}
