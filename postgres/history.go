package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// HistoryQuery says which part of the history is wanted. The zero value is the
// newest of everything.
type HistoryQuery struct {
	Role         string    // of terms only; default all
	Node         uuid.UUID // default all
	NodeMatching string    // of all nodes that had this name, or whose id begins so, with four characters at least; default all
	Since, Until time.Time // what was going on in between; default without bound
	Latest       bool      // the last term of each role alone
	Limit        int       // default 1,000
}

// TermRecord is a term that was, or that goes on.
type TermRecord struct {
	Role        string
	Term        int64
	Node        uuid.UUID
	NodeName    string
	Incarnation int32
	Began       time.Time
	// Ended is zero while the term goes on. The end of one whose node crashed or
	// fell silent is when that was noticed, but no later than two leases after
	// its last heartbeat: nobody may have been there to notice.
	Ended  time.Time
	Reason tenure.EndReason // empty while the term goes on
	By     string           // who asked for the end, if somebody did
	// Vacant is for how long nobody had led the role when the term began, or
	// negative if that is not known: it was the first term, or the server had
	// changed.
	Vacant time.Duration
	// Retired is when the role was retired after this term, zero if it was not.
	Retired time.Time
}

// NodeRecord is a change of a node's status, or of its session.
type NodeRecord struct {
	At          time.Time
	Node        uuid.UUID
	NodeName    string
	Incarnation int32
	Status      string // joining, active, draining, dead, or left: it is gone
	Previous    string // empty if the node came
	By          string // who asked for it, if somebody did
}

// The last term of a role is in its own row. One that its node left open is over
// as it will be recorded by the next leader: see stmtClose.
const readHistory = `
SELECT *
FROM (
    SELECT role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by, vacant_ms,
        NULL::timestamptz AS retired_at
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
        t.vacant_ms,
        t.retired_at
    FROM {terms} t
    LEFT JOIN (
        SELECT
            id,
            incarnation,
            last_heartbeat + lease_ms * interval '1 millisecond' AS lease_until,
            CASE WHEN died_at IS NOT NULL OR last_heartbeat + lease_ms * interval '2 milliseconds' <= clock_timestamp()
                THEN least(died_at, last_heartbeat + lease_ms * interval '2 milliseconds')
            END AS over_at
        FROM {nodes}
    ) n ON t.ended_at IS NULL AND n.id = t.node_id AND n.incarnation = t.incarnation
    WHERE t.term > 0 AND ($1 = '' OR t.role = $1)
) terms
WHERE ($2::uuid IS NULL OR node_id = $2)
    AND ($7 = '' OR node_name = $7 OR length($7) >= 4 AND starts_with(node_id::text, lower($7)))
    AND ($3::timestamptz IS NULL OR ended_at IS NULL OR ended_at >= $3 OR retired_at >= $3)
    AND ($4::timestamptz IS NULL OR acquired_at <= $4)
ORDER BY acquired_at DESC, role COLLATE "C", term DESC
LIMIT $5`

const readNodeHistory = `
SELECT at, node_id, node_name, incarnation, status, previous, changed_by
FROM {node_history}
WHERE ($1::uuid IS NULL OR node_id = $1)
    AND ($5 = '' OR node_name = $5 OR length($5) >= 4 AND starts_with(node_id::text, lower($5)))
    AND ($2::timestamptz IS NULL OR at >= $2)
    AND ($3::timestamptz IS NULL OR at <= $3)
ORDER BY at DESC, id DESC
LIMIT $4`

// History returns terms, those that began last first.
func (b *Backend) History(ctx context.Context, query HistoryQuery) ([]TermRecord, error) {
	return readRecords(ctx, b, "read the history of terms", readHistory, func(row pgx.CollectableRow) (TermRecord, error) {
		var (
			r              TermRecord
			ended, retired *time.Time
			vacant         *float64
		)
		err := row.Scan(&r.Role, &r.Term, &r.Node, &r.NodeName, &r.Incarnation, &r.Began, &ended, &r.Reason, &r.By, &vacant, &retired)
		if ended != nil {
			r.Ended = *ended
		}
		if retired != nil {
			r.Retired = *retired
		}
		r.Vacant = -1
		if vacant != nil {
			r.Vacant = fromMilliseconds(*vacant)
		}
		return r, err
	}, query.Role, orNull(query.Node), orNull(query.Since), orNull(query.Until), query.limit(), query.Latest, query.NodeMatching)
}

// NodeHistory returns what became of nodes, the last change first.
func (b *Backend) NodeHistory(ctx context.Context, query HistoryQuery) ([]NodeRecord, error) {
	return readRecords(ctx, b, "read the history of nodes", readNodeHistory, func(row pgx.CollectableRow) (NodeRecord, error) {
		var r NodeRecord
		err := row.Scan(&r.At, &r.Node, &r.NodeName, &r.Incarnation, &r.Status, &r.Previous, &r.By)
		return r, err
	}, orNull(query.Node), orNull(query.Since), orNull(query.Until), query.limit(), query.NodeMatching)
}

func (q HistoryQuery) limit() int { return cmp.Or(q.Limit, 1000) }

func readRecords[R any](ctx context.Context, b *Backend, doing, sql string, scan pgx.RowToFunc[R], args ...any) ([]R, error) {
	var records []R
	err := b.reader.ask(ctx, doing, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, b.names.sql(sql), args...)
		if err == nil {
			records, err = pgx.CollectRows(rows, scan)
		}
		return err
	})
	return records, err
}

// orNull returns nothing for a value that is not set.
func orNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
