package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/postgres"
)

// Database is where processors work: a *pgxpool.Pool, whose user needs the
// privileges of [postgres.Backend.WorkGrants].
type Database = postgres.Database

// Log is an append-only table of events, as a query. Package eventstore has
// one; [Query] makes one of a table of yours.
type Log struct {
	// Name is what people call the log.
	Name string

	query string
	args  []any
}

// Query makes a log of a query over a table of yours. It must return the columns
//
//	transaction_id xid8, position bigint, type text, tags text[], data jsonb,
//	occurred_at timestamptz, correlation_id uuid, causation_id uuid
//
// of rows that are inserted and never updated. transaction_id must be a column
// with the default pg_current_xact_id(), and together with position, a growing
// number, it must be unique and indexed, in this order:
//
//	ALTER TABLE orders_log ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
//	CREATE UNIQUE INDEX ON orders_log (xid, id);
//
// Parameters of the query are $1 and so on, with args as their values.
func Query(name, query string, args ...any) Log {
	return Log{Name: name, query: strings.TrimRight(strings.TrimSpace(query), ";"), args: args}
}

// reading is what one reading of a log brought.
type reading struct {
	events  []Event
	scanned Cursor // everything up to here was looked at
	waiting bool   // there is more, behind the horizon
}

// readLog reads the next events after a cursor. What is not below the horizon,
// the oldest transaction that still runs, may get predecessors, and waits. The
// place up to which everything was looked at is that of the last row below the
// horizon, whether selected or not.
const readLog = `
WITH horizon AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xid
), found AS MATERIALIZED (
    SELECT log.*
    FROM (%[1]s) log, horizon
    WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
        AND log.transaction_id < horizon.xid%[5]s
    ORDER BY log.transaction_id, log.position
    LIMIT $%[4]d
)
SELECT
    true, transaction_id::text::numeric::bigint, position, type, tags, data, occurred_at, correlation_id, causation_id, false
FROM found
UNION ALL
SELECT
    false, coalesce(last.transaction_id::text::numeric::bigint, 0), coalesce(last.position, 0), '', '{}', 'null', NULL, NULL, NULL,
    EXISTS (
        SELECT
        FROM (%[1]s) log, horizon
        WHERE log.transaction_id >= horizon.xid
            AND (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    )
FROM (SELECT count(*) AS rows FROM found) counted
LEFT JOIN LATERAL (
    SELECT log.transaction_id, log.position
    FROM (%[1]s) log, horizon
    WHERE log.transaction_id < horizon.xid
        AND (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    ORDER BY log.transaction_id DESC, log.position DESC
    LIMIT 1
) last ON true
WHERE counted.rows < $%[4]d`

// reader reads one log for one selection.
type reader struct {
	database Database
	sql      string
	fixed    []any // arguments before and after the cursor and the limit
	own      int   // how many of them are the log's
}

func newReader(database Database, log Log, selection Selection) reader {
	n := len(log.args)
	conditions, selected := selection.conditions(n + 4)
	return reader{
		database: database,
		sql:      fmt.Sprintf(readLog, log.query, n+1, n+2, n+3, conditions),
		fixed:    append(append([]any{}, log.args...), selected...),
		own:      n,
	}
}

// read reads at most limit events after a cursor.
func (r reader) read(ctx context.Context, after Cursor, limit int) (reading, error) {
	args := append([]any{}, r.fixed[:r.own]...)
	args = append(args, fmt.Sprint(after.Transaction), after.Position, limit)
	args = append(args, r.fixed[r.own:]...)
	rows, err := r.database.Query(ctx, r.sql, args...)
	if err != nil {
		return reading{}, fmt.Errorf("reading the log: %w", err)
	}
	defer rows.Close()
	result := reading{scanned: after}
	for rows.Next() {
		var (
			e                      Event
			isEvent, waiting       bool
			transaction            int64
			occurred               *time.Time
			correlation, causation *uuid.UUID
		)
		if err := rows.Scan(&isEvent, &transaction, &e.Position, &e.Type, &e.Tags, &e.Data, &occurred,
			&correlation, &causation, &waiting); err != nil {
			return reading{}, fmt.Errorf("reading the log: %w", err)
		}
		e.Transaction = uint64(transaction)
		if !isEvent {
			result.waiting = waiting
			if result.scanned.Before(e.Cursor) {
				result.scanned = e.Cursor
			}
			continue
		}
		if occurred != nil {
			e.OccurredAt = *occurred
		}
		if correlation != nil {
			e.Correlation = *correlation
		}
		if causation != nil {
			e.Causation = *causation
		}
		result.events = append(result.events, e)
		if result.scanned.Before(e.Cursor) {
			result.scanned = e.Cursor
		}
	}
	if err := rows.Err(); err != nil {
		return reading{}, fmt.Errorf("reading the log: %w", err)
	}
	// The statement as a whole promises no order.
	slices.SortFunc(result.events, func(a, b Event) int { return a.Cursor.compare(b.Cursor) })
	return result, nil
}
