package processor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Database is where processors work, usually a *pgxpool.Pool. Its user needs
// the privileges of [postgres.Backend.WorkGrants]. A processor uses at most two
// of its connections at the same time.
type Database = postgres.Database

// Log is an append-only table of events, given as a query. Package eventstore
// provides one; [LogFromQuery] uses your own table.
type Log struct {
	// Name is the log's display name.
	Name string
	// Table is the table behind the query, as written in SQL. TransactionColumn
	// and PositionColumn are its columns for transaction_id and position, by
	// default with these names. Only [Admin.Repair] uses them, after a restore
	// from another database cluster, and they can be set then.
	Table, TransactionColumn, PositionColumn string

	query string
	args  []any
}

// columns returns the names of the table's columns.
func (l Log) columns() []string {
	return []string{cmp.Or(l.TransactionColumn, "transaction_id"), cmp.Or(l.PositionColumn, "position")}
}

// LogFromQuery returns a log for a query over your own table. The query must
// return the columns
//
//	transaction_id xid8, position bigint, type text, tags text[], data jsonb,
//	occurred_at timestamptz, correlation_id uuid, causation_id uuid
//
// of rows inserted once and never updated. transaction_id must be a column with the
// default pg_current_xact_id(). Together with position, an increasing number, it must be
// unique and indexed, in this order:
//
//	ALTER TABLE orders_log ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
//	CREATE UNIQUE INDEX ON orders_log (xid, id);
//
// The query may have parameters $1 and so on, with args as their values.
func LogFromQuery(name, query string, args ...any) Log {
	return Log{Name: name, query: strings.TrimRight(strings.TrimSpace(query), "; \n\t"), args: args}
}

// The statements on a log; each begins with the log's query and reads rows after a cursor.
// Rows at or above the horizon, the oldest running transaction, are not read: earlier rows
// may still appear.
const (
	// The contents of an event other than cursor and type, and the placeholder for a
	// processor without need of them.
	contents = `log.tags::text[],
    log.data::jsonb,
    log.occurred_at::timestamptz,
    log.correlation_id::uuid,
    log.causation_id::uuid`
	noContents = `NULL::text[],
    NULL::jsonb,
    NULL::timestamptz,
    NULL::uuid,
    NULL::uuid`

	// No earlier row can appear below the horizon, so these rows are final.
	readAll = `
SELECT
    log.transaction_id,
    log.position::bigint,
    log.type::text,
    %[5]s
FROM (%[1]s) log
WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY log.transaction_id, log.position
LIMIT $%[4]d`

	// The last of the next rows, selected or not. It limits the rows read by one
	// statement: if few rows are selected, a search for a full batch could take very long
	// and hold back VACUUM.
	readReach = `
SELECT next.transaction_id, next.position
FROM (
    SELECT log.transaction_id, log.position::bigint AS position
    FROM (%[1]s) log
    WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
        AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY log.transaction_id, log.position
    LIMIT $%[4]d
) next
ORDER BY next.transaction_id DESC, next.position DESC
LIMIT 1`

	readSelected = `
SELECT
    log.transaction_id,
    log.position::bigint,
    log.type::text,
    %[8]s
FROM (%[1]s) log
WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    AND (log.transaction_id, log.position) <= ($%[5]d::text::xid8, $%[6]d::bigint)%[7]s
ORDER BY log.transaction_id, log.position
LIMIT $%[4]d`

	// Whether any row after a cursor was committed, also above the horizon: it
	// checks only the last row, since a search could read the whole log.
	readMore = `
SELECT true
FROM (%[1]s) log
WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
ORDER BY log.transaction_id DESC, log.position DESC
LIMIT 1`
)

// stride is how many rows one statement reads to find selected ones.
const stride = 10_000

// reader reads one log with one selection. It is not safe for concurrent use.
type reader struct {
	database         Database
	log              Log
	selection        Selection
	selected         []any // the selection's arguments; nil if it selects all
	read, reach, any string
	stride           int    // how many rows one statement reads
	searchEnd        Cursor // where the current search for selected rows ends
}

func newReader(database Database, log Log, selection Selection, columns string) *reader {
	n := len(log.args)
	r := &reader{
		database: database, log: log, selection: selection, stride: stride,
		reach: fmt.Sprintf(readReach, log.query, n+1, n+2, n+3),
		any:   fmt.Sprintf(readMore, log.query, n+1, n+2),
	}
	conditions, args := selection.conditions(n + 6)
	if len(args) == 0 {
		r.read = fmt.Sprintf(readAll, log.query, n+1, n+2, n+3, columns)
	} else {
		r.read = fmt.Sprintf(readSelected, log.query, n+1, n+2, n+3, n+4, n+5, conditions, columns)
		r.selected = args
	}
	return r
}

// next reads at most limit events after a cursor. It also returns the cursor of the end of
// the read.
func (r *reader) next(ctx context.Context, from Database, after Cursor, limit int) ([]Event, Cursor, error) {
	scanned := after
	args := []any{limit}
	if r.selected != nil {
		if err := r.extendReach(ctx, from, after); err != nil || r.searchEnd == after {
			return nil, after, err
		}
		scanned = r.searchEnd
		args = append(append(args, fmt.Sprint(scanned.Transaction), scanned.Position), r.selected...)
	}
	rows, err := r.query(ctx, from, r.read, after, args...)
	if err != nil {
		return nil, after, err
	}
	events, err := decode(rows, limit)
	if err != nil {
		return nil, after, fmt.Errorf("read the log: %w", err)
	}
	if len(events) > 0 && (r.selected == nil || len(events) == limit) {
		scanned = events[len(events)-1].Cursor
	}
	return events, scanned, nil
}

// extendReach moves the end of the search past a cursor, if there are rows.
func (r *reader) extendReach(ctx context.Context, from Database, after Cursor) error {
	if after.Before(r.searchEnd) {
		return nil
	}
	r.searchEnd = after
	return r.one(ctx, from, r.reach, after, []any{r.stride}, &r.searchEnd.Transaction, &r.searchEnd.Position)
}

// more reports whether any row after a cursor was committed.
func (r *reader) more(ctx context.Context, after Cursor) (more bool, err error) {
	err = r.one(ctx, r.database, r.any, after, nil, &more)
	return more, err
}

// query runs one of the statements with results in the binary format. It is
// planned each time, because a plan made for a short log would still be used
// when the log is long.
func (r *reader) query(ctx context.Context, from Database, sql string, after Cursor, args ...any) (pgx.Rows, error) {
	all := append([]any{pgx.QueryExecModeCacheDescribe, pgx.QueryResultFormats{pgx.BinaryFormatCode}}, r.log.args...)
	all = append(all, fmt.Sprint(after.Transaction), after.Position)
	rows, err := from.Query(ctx, sql, append(all, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return rows, nil
}

// one reads the only row of a statement, if there is one.
func (r *reader) one(ctx context.Context, from Database, sql string, after Cursor, args []any, into ...any) error {
	rows, err := r.query(ctx, from, sql, after, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return nil
}
