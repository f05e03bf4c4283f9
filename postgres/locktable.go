package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/server"
)

// lockTable counts the locks in the server's lock table. A full table stops everything,
// including heartbeats: each writing transaction needs an entry in it. So all elections
// together use at most half of it. The locks of other programs do not prevent an attempt:
// only the server decides whether there is room.
type lockTable struct {
	capacity  server.LockCapacity
	used      int           // locks of all sessions at the last count, and later ones of this session
	elections int           // locks of nodes among them
	counted   time.Duration // the time of the count, on the node's monotonic clock
	most      int           // how many locks to acquire in one statement after the server had no room; 0: any number
}

func (t *lockTable) count(used, elections int, now time.Duration) {
	t.used, t.elections, t.counted = used, elections, now
}

func (t *lockTable) add(n int) { t.used, t.elections = t.used+n, t.elections+n }

// full returns the error for a lack of room for more locks, with the setting to change.
func (t *lockTable) full(more int) error {
	return fmt.Errorf("%w: %d of its %d locks are in use, %d of them by elections, which may use half, and %d more were wanted: "+
		"set max_locks_per_transaction, which is %d, to %d or more, and restart the server",
		ErrLockTableFull, t.used, t.capacity.Size(), t.elections, more,
		t.capacity.PerTransaction, max(t.capacity.PerTransaction+1, t.capacity.Needed(t.used+more)))
}

// room returns how many of n locks elections may acquire, and an error if fewer than n.
// It counts only if this attempt could come near the limit, or needs many locks after a
// long time: the count stops the whole lock table for a moment.
func (t *lockTable) room(s *session, n int) (int, error) {
	const many, long = 64, time.Minute
	limit, now := t.capacity.Usable(), s.opening.Clock.Now().Mono
	if t.elections+n <= limit/2 && (n < many || now-t.counted < long) {
		return n, nil
	}
	if err := s.recount(); err != nil {
		return 0, err
	}
	if room := max(0, limit-t.elections); room < n {
		return room, t.full(n)
	}
	return n, nil
}

// batch is how many of n locks to acquire in the next statement.
func (t *lockTable) batch(n int) int {
	if t.most == 0 {
		return n
	}
	return min(n, t.most)
}

// fit records whether the server had room for so many locks.
func (t *lockTable) fit(n int, had bool) {
	switch {
	case !had:
		t.most = max(1, n/2)
	case t.most > 0 && n >= t.most:
		t.most *= 2
	}
	if t.most > maxBatch {
		t.most = 0
	}
}

// maxBatch is more locks than one attempt needs.
const maxBatch = 1 << 14

// recount counts the locks in the server's table.
func (s *session) recount() error {
	var used, elections int
	err := s.query(stmtLockUsage, func(rows pgx.Rows) error { return rows.Scan(&used, &elections) })
	if err == nil {
		s.table.count(used, elections, s.opening.Clock.Now().Mono)
	}
	return err
}
