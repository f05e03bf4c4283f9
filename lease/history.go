package lease

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// HistoryQuery says which part of the history is wanted. The zero value is the
// newest of everything.
type HistoryQuery struct {
	Role         string    // default all
	Node         string    // of nodes with this name or id; default all
	Since, Until time.Time // what was going on in between; default without bound
	Limit        int       // default 1,000
}

// TermRecord is a term that was, or that goes on.
type TermRecord struct {
	Role     string
	Term     int64
	Node     uuid.UUID
	NodeName string
	Began    time.Time
	// Ended is zero while the term goes on. The end of one whose node fell silent
	// is that of its lease.
	Ended  time.Time
	Reason tenure.EndReason // empty while the term goes on
	// Vacant is for how long nobody had led the role when the term began, or
	// negative if that is not known: it was the first term.
	Vacant time.Duration
}

// The last term of a role is in its seat. One that its node left open is over
// with the lease.
const historyQuery = `
SELECT *
FROM (
    SELECT role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us
    FROM {history}
    UNION ALL
    SELECT
        t.role,
        t.term,
        t.node_id,
        t.node_name,
        t.began_at,
        COALESCE(t.ended_at, s.ended_at, CASE WHEN s.expires_at <= {now} THEN s.expires_at END),
        CASE
            WHEN t.ended_at IS NOT NULL THEN t.end_reason
            WHEN s.ended_at IS NOT NULL OR s.expires_at <= {now} THEN 'lease_expired'
        END,
        t.vacant_us
    FROM {seats} t
    LEFT JOIN {sessions} s ON s.incarnation = t.holder
    WHERE t.term > 0
) terms
WHERE (? = '' OR role = ?)
    AND (? = '' OR node_name = ? OR node_id = ?)
    AND (ended_at IS NULL OR ended_at >= ?)
    AND began_at <= ?
ORDER BY began_at DESC, role, term DESC
LIMIT ?`

// History returns terms, those that began last first. It is bounded by the
// context. Those that ended before [Config].KeepHistory are gone.
func (b *Backend) History(ctx context.Context, query HistoryQuery) ([]TermRecord, error) {
	since, until := int64(0), int64(math.MaxInt64)
	if !query.Since.IsZero() {
		since = query.Since.UnixMicro()
	}
	if !query.Until.IsZero() {
		until = query.Until.UnixMicro()
	}
	var records []TermRecord
	err := b.db.Read(ctx, "read the history of terms", func(ctx context.Context, on sqldb.Querier) error {
		records = nil
		return sqldb.ForEach(ctx, on, b.queries.history, func(rows *sql.Rows) error {
			var (
				r             TermRecord
				node          string
				began         int64
				ended, vacant sql.NullInt64
				reason        sql.NullString
			)
			if err := rows.Scan(&r.Role, &r.Term, &node, &r.NodeName, &began, &ended, &reason, &vacant); err != nil {
				return err
			}
			r.Node, _ = uuid.Parse(node) // the zero value if a stranger wrote it
			r.Began, r.Reason, r.Vacant = time.UnixMicro(began), tenure.EndReason(reason.String), -1
			if ended.Valid {
				r.Ended = time.UnixMicro(ended.Int64)
			}
			if vacant.Valid && vacant.Int64 >= 0 {
				r.Vacant = microseconds(vacant.Int64)
			}
			records = append(records, r)
			return nil
		}, query.Role, query.Role, query.Node, query.Node, query.Node, since, until, cmp.Or(query.Limit, 1000))
	})
	return records, err
}
