package processor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Database is where processors work: a *pgxpool.Pool, whose user needs the
// privileges of [postgres.Backend.WorkGrants]. A processor takes up to two of
// its connections at once.
type Database = postgres.Database

// Log is an append-only table of events, as a query. Package eventstore has
// one; [LogFromQuery] makes one of a table of yours.
type Log struct {
	// Name is what people call the log.
	Name string
	// Table is the table behind the query, as it stands in SQL, and the columns
	// are those for transaction_id and position, by default of these names. Only
	// [Admin.Repair] needs to know, after a restore from another database
	// cluster, and can be told then.
	Table, TransactionColumn, PositionColumn string

	query string
	args  []any
}

// columns are those of the table.
func (l Log) columns() []string {
	return []string{cmp.Or(l.TransactionColumn, "transaction_id"), cmp.Or(l.PositionColumn, "position")}
}

// LogFromQuery makes a log of a query over a table of yours. It must return the columns
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
func LogFromQuery(name, query string, args ...any) Log {
	return Log{Name: name, query: strings.TrimRight(strings.TrimSpace(query), "; \n\t"), args: args}
}

// The statements on a log, with the log's query as the first part. All look at
// rows after a cursor. What is not below the horizon, the oldest transaction
// that still runs, may get predecessors, and is left alone.
const (
	// What an event has besides its place and type, and the same for a processor
	// that does not want it.
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

	// No row below the horizon can ever get a predecessor: the next ones are
	// final.
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

	// The last of the next rows, selected or not. It bounds what one statement
	// looks at: where few rows are selected, one that looked for a whole batch
	// could take for ever, and hold VACUUM back meanwhile.
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

	// Whether anything was committed after a cursor, also above the horizon: the
	// last row was. Looking for any such row could mean all of the log.
	readMore = `
SELECT true
FROM (%[1]s) log
WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
ORDER BY log.transaction_id DESC, log.position DESC
LIMIT 1`
)

// stride is how many rows one statement looks at, to find those that are
// selected.
const stride = 10_000

// reader reads one log for one selection. It is not safe for concurrent use.
type reader struct {
	database         Database
	log              Log
	selection        Selection
	selected         []any // the selection's arguments; nil if it selects all
	read, reach, any string
	stride           int    // how many rows one statement looks at
	settled          Cursor // the end of what the selection is looked for in
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

// next reads at most limit events after a cursor, and returns up to where
// everything was looked at.
func (r *reader) next(ctx context.Context, after Cursor, limit int) ([]Event, Cursor, error) {
	scanned := after
	args := []any{limit}
	if r.selected != nil {
		if err := r.settle(ctx, after); err != nil || r.settled == after {
			return nil, after, err
		}
		scanned = r.settled
		args = append(append(args, fmt.Sprint(scanned.Transaction), scanned.Position), r.selected...)
	}
	rows, err := r.query(ctx, r.read, after, args...)
	if err != nil {
		return nil, after, err
	}
	events, err := decode(rows, limit)
	if err != nil {
		return nil, after, fmt.Errorf("reading the log: %w", err)
	}
	if len(events) > 0 && (r.selected == nil || len(events) == limit) {
		scanned = events[len(events)-1].Cursor
	}
	return events, scanned, nil
}

// settle sees to it that what is settled ends behind a cursor, if anything
// there is.
func (r *reader) settle(ctx context.Context, after Cursor) error {
	if after.Before(r.settled) {
		return nil
	}
	r.settled = after
	return r.one(ctx, r.reach, after, []any{r.stride}, &r.settled.Transaction, &r.settled.Position)
}

// more reports whether anything was committed after a cursor.
func (r *reader) more(ctx context.Context, after Cursor) (more bool, err error) {
	err = r.one(ctx, r.any, after, nil, &more)
	return more, err
}

// query runs one of the statements, with results in the binary format. It is
// planned anew each time: a plan that was made when the log was short would be
// used for long afterwards.
func (r *reader) query(ctx context.Context, sql string, after Cursor, args ...any) (pgx.Rows, error) {
	all := append([]any{pgx.QueryExecModeCacheDescribe, pgx.QueryResultFormats{pgx.BinaryFormatCode}}, r.log.args...)
	all = append(all, fmt.Sprint(after.Transaction), after.Position)
	rows, err := r.database.Query(ctx, sql, append(all, args...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	return rows, nil
}

// one reads the only row of a statement, if there is one.
func (r *reader) one(ctx context.Context, sql string, after Cursor, args []any, into ...any) error {
	rows, err := r.query(ctx, sql, after, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	return nil
}
