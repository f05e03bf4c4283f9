package processor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lag is how far a processor is behind its log. Its leader measures this every
// 5 s, between batches, and while a handler still runs after its context has
// ended. While the role has no leader, the values are those of the last leader.
type Lag struct {
	Name string
	Led  bool // its role has a leader now
	// Behind is the number of selected events that wait. The leader counts them
	// among the next 10,000 rows of the log; Truncated says that there are more
	// rows.
	Behind    int64
	Truncated bool
	// BlockedByHorizon is how many of them wait for older transactions anywhere
	// in the database cluster to end; see [Admin.Horizon].
	BlockedByHorizon int64
	// OldestWait is how long the oldest of them has waited since it occurred,
	// or 0.
	OldestWait time.Duration
	// AsOf is when the leader measured the lag, by the database's clock, and Age how
	// long before the read that was. A leader measures every 5 s while events wait,
	// and otherwise reads them as they come.
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
		now     time.Time
	)
	err = row.Scan(&l.Name, &l.Led, &l.Behind, &l.Truncated, &l.BlockedByHorizon, &waiting, &l.AsOf, &now)
	l.Age = max(0, now.Sub(l.AsOf))
	l.OldestWait = max(0, time.Duration(waiting*float64(time.Millisecond)))
	return l, err
}

// measureInterval is how often a leader measures the lag.
const measureInterval = 5 * time.Second

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

// gauge records the lag in the processor's row.
type gauge struct {
	measured time.Time
	clear    bool // the row says that no event waits
}

// backlog is a measurement of the waiting events.
type backlog struct {
	behind, held int64
	since        *time.Time
	more         bool
}

// measure records how many events wait, unless it did so recently.
func (l *loop) measure(ctx context.Context) error {
	if time.Since(l.gauge.measured) < measureInterval {
		return nil
	}
	l.gauge = gauge{measured: time.Now()}
	waiting, err := l.reader.count(ctx, l.currentCursor())
	if err != nil {
		return err
	}
	return l.writeLag(ctx, waiting)
}

// recordCaughtUp records that no event waits.
func (l *loop) recordCaughtUp(ctx context.Context) error {
	if l.gauge.clear {
		return nil
	}
	err := l.writeLag(ctx, backlog{})
	l.gauge.clear = err == nil
	return err
}

func (l *loop) writeLag(ctx context.Context, waiting backlog) error {
	_, err := l.database.Exec(ctx, l.tables.SQL(recordLag), l.config.Name, l.term.Number(),
		waiting.behind, waiting.more, waiting.held, waiting.since, l.term.Role().Name())
	if err != nil {
		return fmt.Errorf("record the lag: %w", err)
	}
	return nil
}

// count counts the events that wait after a cursor.
func (r *reader) count(ctx context.Context, after Cursor) (waiting backlog, err error) {
	n := len(r.log.args)
	conditions, args := r.selection.conditions(n + 4)
	sql := fmt.Sprintf(countLag, r.log.query, n+1, n+2, n+3, conditions)
	err = r.one(ctx, r.database, sql, after, append([]any{stride}, args...), &waiting.behind, &waiting.held, &waiting.since, &waiting.more)
	return waiting, err
}
