package processor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lag is how far a processor is behind its log. Its leader measures this every 5 s while
// there is work, also beside a running batch, and at rest every 15 s. While the role has
// no leader, the values come from the last leader.
type Lag struct {
	Name string
	Led  bool // its role has a leader now
	// Behind is the number of waiting selected events. The leader counts them among the
	// next 10,000 rows of the log; Truncated reports further rows.
	Behind    int64
	Truncated bool
	// BlockedByHorizon is how many of them wait for older transactions anywhere
	// in the database cluster to end; see [Admin.Horizon].
	BlockedByHorizon int64
	// OldestWait is how long the oldest of them has waited since it occurred,
	// or 0.
	OldestWait time.Duration
	// AsOf is when the leader measured the lag, by the database's clock, and Age how long
	// before the read. If no leader has measured it, AsOf is zero.
	AsOf time.Time
	Age  time.Duration
}

// Lag returns the lag of the named processors, or of all if there are no names,
// ordered by name.
func (m *Admin) Lag(ctx context.Context, names ...string) ([]Lag, error) {
	all, err := collect(ctx, m.tables, "read the lag", scanLag, readLag, append([]string{}, names...))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(l Lag) bool { return l.Name == name }) {
			return nil, m.unknown(ctx, name)
		}
	}
	return all, nil
}

func scanLag(row pgx.CollectableRow) (l Lag, err error) {
	var (
		waiting float64
		at      *time.Time
		now     time.Time
	)
	err = row.Scan(&l.Name, &l.Led, &l.Behind, &l.Truncated, &l.BlockedByHorizon, &waiting, &at, &now)
	if at != nil {
		l.AsOf, l.Age = *at, max(0, now.Sub(*at))
	}
	l.OldestWait = max(0, time.Duration(waiting*float64(time.Millisecond)))
	return l, err
}

// countLag counts waiting events after a cursor, among the next rows of the
// log.
const countLag = `
SELECT
    count(*) FILTER (WHERE true%[5]s),
    count(*) FILTER (WHERE log.transaction_id >= (SELECT pg_snapshot_xmin(pg_current_snapshot()))%[5]s),
    min(log.occurred_at) FILTER (WHERE true%[5]s),
    count(*) >= $%[4]d
FROM (
    SELECT log.transaction_id, log.type::text AS type, log.tags::text[] AS tags, log.occurred_at::timestamptz AS occurred_at
    FROM (%[1]s) log
    WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    ORDER BY log.transaction_id, log.position
    LIMIT $%[4]d
) log`

// backlog is a measurement of the waiting events.
type backlog struct {
	behind, held int64
	since        *time.Time
	more         bool
}

// count counts the waiting events after a cursor.
func (r *reader) count(ctx context.Context, after Cursor) (waiting backlog, err error) {
	n := len(r.log.args)
	conditions, args := r.selection.conditions(n + 4)
	sql := fmt.Sprintf(countLag, r.log.query, n+1, n+2, n+3, conditions)
	err = r.one(ctx, r.database, sql, after, append([]any{stride}, args...), &waiting.behind, &waiting.held, &waiting.since, &waiting.more)
	return waiting, err
}
