package records

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// The last term of a role is in the role's row. An open term of a dead node is shown as
// the next leader will record it: see stmtClose.
const readHistory = `
SELECT *
FROM (
    SELECT role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by, end_cause, vacant_ms,
        silent_ms, blocked_by, NULL::timestamptz AS retired_at, NULL::timestamptz AS next_by
    FROM {history}
    WHERE NOT $6 AND ($1 = '' OR role = $1) AND ($3::timestamptz IS NULL OR ended_at >= $3)
    UNION ALL
    SELECT t.role, t.term, t.node_id, t.node_name, t.incarnation, t.acquired_at,
        coalesce(t.ended_at, n.over_at),
        coalesce(t.end_reason, CASE
            WHEN n.over_at IS NULL THEN ''
            WHEN n.lease_until <= n.over_at THEN 'lease_expired'
            ELSE 'crashed'
        END),
        t.ended_by,
        t.end_cause,
        t.vacant_ms,
        t.silent_ms,
        t.blocked_by,
        t.retired_at,
        t.next_by
    FROM {terms} t
    LEFT JOIN (
        SELECT
            id,
            incarnation,
            last_heartbeat + lease_ms * interval '1 millisecond' AS lease_until,
            CASE WHEN died_at IS NOT NULL OR {term_end}(last_heartbeat, lease_ms, NULL, NULL) <= clock_timestamp()
                THEN {term_end}(last_heartbeat, lease_ms, died_at, NULL)
            END AS over_at
        FROM {nodes}
    ) n ON t.ended_at IS NULL AND n.id = t.node_id AND n.incarnation = t.incarnation
    WHERE t.term > 0 AND ($1 = '' OR t.role = $1)
) terms
WHERE ($7 = '' OR node_id = $2::uuid OR node_name = $7 OR length($7) >= 4 AND starts_with(node_id::text, lower($7)))
    AND ($3::timestamptz IS NULL OR ended_at IS NULL OR ended_at >= $3 OR retired_at >= $3)
    AND ($4::timestamptz IS NULL OR acquired_at <= $4)
ORDER BY acquired_at DESC, role COLLATE "C", term DESC
LIMIT $5`

const readNodeHistory = `
SELECT at, node_id, node_name, incarnation, status, previous, changed_by, silent
FROM {node_history}
WHERE ($5 = '' OR node_id = $1::uuid OR node_name = $5 OR length($5) >= 4 AND starts_with(node_id::text, lower($5)))
    AND ($2::timestamptz IS NULL OR at >= $2)
    AND ($3::timestamptz IS NULL OR at <= $3)
ORDER BY at DESC, id DESC
LIMIT $4`

// History is the method of the backend with this name.
func (rs *Records) History(ctx context.Context, query history.Query) ([]history.Term, error) {
	return readRecords(ctx, rs, "read the history of terms", readHistory, func(row pgx.CollectableRow) (history.Term, error) {
		var (
			r              history.Term
			ended, retired *time.Time
			next           *time.Time
			vacant, silent *float64
		)
		err := row.Scan(&r.Role, &r.Term, &r.Node, &r.NodeName, &r.Incarnation, &r.Began, &ended, &r.Reason, &r.By, &r.Cause, &vacant, &silent, &r.PrecedingBlocker, &retired, &next)
		if ended != nil {
			r.Ended = *ended
		}
		if retired != nil {
			r.Retired = *retired
		}
		if next != nil {
			r.NextBy = *next
		}
		r.PrecedingVacancy, r.PrecedingSilence = orUnknown(vacant), orUnknown(silent)
		return r, err
	}, query.Role, nodeID(query), orNull(query.Since), orNull(query.Until), query.Rows(), query.Latest, query.Node)
}

// orUnknown returns a duration in milliseconds, or -1 for a null.
func orUnknown(ms *float64) time.Duration {
	if ms == nil {
		return -1
	}
	return link.FromMilliseconds(*ms)
}

// NodeHistory is the method of the backend with this name.
func (rs *Records) NodeHistory(ctx context.Context, query history.Query) ([]history.NodeChange, error) {
	return readRecords(ctx, rs, "read the history of nodes", readNodeHistory, func(row pgx.CollectableRow) (history.NodeChange, error) {
		var r history.NodeChange
		err := row.Scan(&r.At, &r.Node, &r.NodeName, &r.Incarnation, &r.Status, &r.Previous, &r.By, &r.Silent)
		return r, err
	}, nodeID(query), orNull(query.Since), orNull(query.Until), query.Rows(), query.Node)
}

// nodeID returns the query's Node if it is an id. It can also be a name.
func nodeID(query history.Query) *uuid.UUID {
	if id, ok := query.NodeID(); ok {
		return &id
	}
	return nil
}

func readRecords[R any](ctx context.Context, rs *Records, doing, sql string, scan pgx.RowToFunc[R], args ...any) ([]R, error) {
	var records []R
	err := rs.Reader.Ask(ctx, doing, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, rs.Names.SQL(sql), args...)
		if err == nil {
			records, err = pgx.CollectRows(rows, scan)
		}
		return err
	})
	return records, err
}

// orNull returns nil for the zero value.
func orNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
