package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// Start is the place in the log where a new processor begins to read. The zero value is
// the beginning of the log. At most one field may be set.
//
// It is used once, when a leader claims a processor with a name new to the installation.
// It has no effect on an existing processor: use [Admin.Rewind] to move it. A rebuild
// begins at the beginning of the log.
type Start struct {
	// End begins at the end of the log, at the moment of the first claim. The processor
	// receives every event committed after this moment, also of transactions open then.
	// Because the log is in the order of transaction ids, it also receives some events
	// committed before: events of transactions with higher ids than the oldest open
	// transaction of the database cluster; see [Admin.Horizon]. It receives no earlier
	// ones.
	End bool
	// Time begins with the first event, in the order of the log, with this time of
	// occurrence or a later one. Every such event is received, also of open transactions;
	// later events in the log can have occurred earlier. If there is none, Time is like
	// End. The processor does not begin before this time, nor while an event without a
	// time would have to be compared. Finding the event reads the log from its beginning,
	// once.
	Time time.Time
	// After begins with the first event after this cursor. The processor does
	// not begin while no event can have the cursor, as with [Admin.Rewind].
	After Cursor
}

func (s Start) validate(name string) error {
	set := 0
	for _, is := range []bool{s.End, !s.Time.IsZero(), s.After != Cursor{}} {
		if is {
			set++
		}
	}
	if set > 1 {
		return invalid("the processor %s can start at the end, at a time or after a cursor: set one of them", name)
	}
	return nil
}

// Whether a processor exists, and whether its start is still to come.
const checkStart = `
SELECT
    EXISTS (SELECT FROM {processors} WHERE name = $1 AND (term > 0 OR generation > 0)),
    coalesce($2::timestamptz > clock_timestamp(), false),
    $3::text::xid8 >= pg_snapshot_xmax(pg_current_snapshot())`

// The last event that no new event can precede.
const readLastFinal = `
SELECT log.transaction_id, log.position::bigint
FROM (%[1]s) log
WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY log.transaction_id DESC, log.position DESC
LIMIT 1`

// Searches the next rows for the first one with this time or a later one, or without a
// time. It returns this row, if there is one, and the last row before it. Open
// transactions can add no earlier row.
const searchTime = `
WITH next AS MATERIALIZED (
    SELECT log.transaction_id, log.position::bigint AS position, log.occurred_at::timestamptz AS at
    FROM (%[1]s) log
    WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
        AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY log.transaction_id, log.position
    LIMIT $%[4]d
), found AS (
    SELECT transaction_id, position, at
    FROM next
    WHERE at IS NULL OR at >= $%[5]d
    ORDER BY transaction_id, position
    LIMIT 1
)
SELECT
    found.position IS NOT NULL,
    found.position IS NOT NULL AND found.at IS NULL,
    before.transaction_id,
    before.position
FROM (SELECT) here
LEFT JOIN found ON true
LEFT JOIN LATERAL (
    SELECT next.transaction_id, next.position
    FROM next
    WHERE found.position IS NULL OR (next.transaction_id, next.position) < (found.transaction_id, found.position)
    ORDER BY next.transaction_id DESC, next.position DESC
    LIMIT 1
) before ON true`

// newCursor returns the cursor of a new processor, and whether to add the processor.
func (l *loop) newCursor(ctx context.Context) (cursor Cursor, add bool, err error) {
	start := l.config.Start
	if start == (Start{}) {
		return Cursor{}, true, nil
	}
	var at *time.Time
	if !start.Time.IsZero() {
		at = &start.Time
	}
	var exists, early, unassigned bool
	err = l.one(ctx, checkStart, []any{l.config.Name, at, fmt.Sprint(start.After.Transaction)}, &exists, &early, &unassigned)
	switch {
	case err != nil:
		return Cursor{}, false, fmt.Errorf("check the start: %w", err)
	case exists:
		return Cursor{}, false, nil
	case early:
		return Cursor{}, false, invalid("the start is at %v, which is in the future", start.Time)
	case unassigned:
		return Cursor{}, false, invalid("the start is after %s, where no event can be yet: the processor would skip future events", start.After)
	}
	// The ids of a restored log cannot be compared, and a repair must not move
	// this cursor.
	ahead, err := l.logAhead(ctx)
	if err == nil && ahead {
		err = fmt.Errorf("%w: repair another processor of the log, and then start this one", ErrForeignLog)
	}
	switch {
	case err != nil:
		return Cursor{}, false, err
	case start.End:
		cursor, err = l.reader.lastFinal(ctx)
	case at != nil:
		cursor, err = l.reader.searchTime(ctx, start.Time, &l.searched)
	default:
		cursor = start.After
	}
	return cursor, err == nil, err
}

// lastFinal returns the cursor of the last event that no new event can precede, or zero if
// there is none.
func (r *reader) lastFinal(ctx context.Context) (last Cursor, err error) {
	n := len(r.log.args)
	err = r.one(ctx, r.database, fmt.Sprintf(readLastFinal, r.log.query, n+1, n+2), Cursor{}, nil, &last.Transaction, &last.Position)
	return last, err
}

// searchTime returns the cursor before the first event at t or later. It moves the cursor
// from during the search: an interrupted search continues there.
func (r *reader) searchTime(ctx context.Context, t time.Time, from *Cursor) (Cursor, error) {
	n := len(r.log.args)
	sql := fmt.Sprintf(searchTime, r.log.query, n+1, n+2, n+3, n+4)
	for {
		var found, timeless bool
		var transaction *uint64
		var position *int64
		err := r.one(ctx, r.database, sql, *from, []any{r.stride, t}, &found, &timeless, &transaction, &position)
		if err != nil {
			return Cursor{}, err
		}
		if timeless {
			return Cursor{}, fmt.Errorf("%w: the log %s has an event without a time: start at the beginning, the end or a cursor",
				tenure.ErrInvalidConfig, r.log.Name)
		}
		if position != nil {
			*from = Cursor{*transaction, *position}
		}
		if found || position == nil {
			return *from, nil
		}
	}
}
