package memory

import "time"

// BlockedRows are the rows of roles held by other transactions at the last attempt to
// begin a term. Times are on the node's monotonic clock.
type BlockedRows struct {
	byRole map[string]blockage
}

// blockage is since when transactions have kept the term after this one from beginning.
type blockage struct {
	term  int64
	since time.Duration
}

// Since returns since when transactions have prevented a role's term after previous. A
// new term restarts the count. A new attempt after an abandoned one does not, whichever
// session held the lock in between.
func (r *BlockedRows) Since(role string, previous int64, now time.Duration) time.Duration {
	b, found := r.byRole[role]
	if !found || b.term != previous {
		b = blockage{previous, now}
		if r.byRole == nil {
			r.byRole = map[string]blockage{}
		}
		r.byRole[role] = b
	}
	return b.since
}

// Forget forgets a role when its term has begun.
func (r *BlockedRows) Forget(role string) { delete(r.byRole, role) }

// Len returns the number of roles.
func (r *BlockedRows) Len() int { return len(r.byRole) }
