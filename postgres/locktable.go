package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// lockCapacity is how many locks the server's shared table is certain to hold:
// max_locks_per_transaction for each of max_connections and
// max_prepared_transactions. The server also counts its own processes, and has
// some memory to spare; neither can be relied on.
type lockCapacity struct {
	perTransaction int // max_locks_per_transaction
	transactions   int // max_connections + max_prepared_transactions
}

func (c lockCapacity) size() int { return c.perTransaction * c.transactions }

// usable is what elections may use: beyond the table's end the queries of
// bystanders fail, so half of it is theirs.
func (c lockCapacity) usable() int { return c.size() / 2 }

// needed is the least max_locks_per_transaction with which so many locks are
// usable.
func (c lockCapacity) needed(locks int) int {
	transactions := max(1, c.transactions)
	return max(10, (2*locks+transactions-1)/transactions) // the server takes no less than 10
}

// lockTable keeps an account of the server's lock table.
type lockTable struct {
	capacity lockCapacity
	used     int           // at the last count, and by this session since
	counted  time.Duration // when that was, on the node's monotonic clock
}

func (t *lockTable) count(used int, now time.Duration) { t.used, t.counted = used, now }

// full says that there is no room for so many locks more, and what would make
// some.
func (t *lockTable) full(more int) error {
	return fmt.Errorf("%w: %d of its %d locks are in use, elections may use half, and %d more were wanted: "+
		"set max_locks_per_transaction, which is %d, to %d or more, and restart the server",
		tenure.ErrLockTableFull, t.used, t.capacity.size(), more,
		t.capacity.perTransaction, max(t.capacity.perTransaction+1, t.capacity.needed(t.used+more)))
}

// room returns how many of n locks may be taken, and an error if fewer. It
// counts only if this attempt could come near the limit, or wants many after a
// long time: the count stops the whole lock table for a moment.
func (t *lockTable) room(s *session, n int) (int, error) {
	const many, long = 64, time.Minute
	limit, now := t.capacity.usable(), s.opening.Clock.Now().Mono
	if t.used+n <= limit/2 && (n < many || now-t.counted < long) {
		return n, nil
	}
	if err := s.recount(); err != nil {
		return 0, err
	}
	if room := max(0, limit-t.used); room < n {
		return room, t.full(n)
	}
	return n, nil
}

// recount counts the locks in the server's table.
func (s *session) recount() error {
	used := 0
	err := s.query(stmtLockUsage, func(rows pgx.Rows) error { return rows.Scan(&used) })
	if err == nil {
		s.table.count(used, s.opening.Clock.Now().Mono)
	}
	return err
}
