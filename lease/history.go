package lease

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// The row of a role contains its last term. If a node did not end its term, the term ends
// with the lease.
const historyQuery = `
SELECT *
FROM (
    SELECT role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us, silent_us, ended_by
    FROM {history}
    WHERE ? = 0
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
        t.vacant_us,
        t.silent_us,
        t.ended_by
    FROM {seats} t
    LEFT JOIN {sessions} s ON s.incarnation = t.holder
    WHERE t.term > 0
) terms
WHERE (? = '' OR role = ?)
    AND (? = '' OR node_name = ? OR node_id LIKE ?)
    AND (ended_at IS NULL OR ended_at >= ?)
    AND began_at <= ?
ORDER BY began_at DESC, role, term DESC
LIMIT ?`

// History returns terms, the latest first. It is bounded by the context. Terms that ended
// longer ago than [Config].KeepHistory are gone.
func (b *Backend) History(ctx context.Context, query history.Query) ([]history.Term, error) {
	latest, since, until := 0, int64(0), int64(math.MaxInt64)
	if query.Latest {
		latest = 1
	}
	if !query.Since.IsZero() {
		since = query.Since.UnixMicro()
	}
	if !query.Until.IsZero() {
		until = query.Until.UnixMicro()
	}
	var records []history.Term
	err := b.db.Read(ctx, "read the history of terms", func(ctx context.Context, on sqldb.Querier) error {
		records = nil
		return sqldb.ForEach(ctx, on, b.sql(historyQuery), func(rows *sql.Rows) error {
			var (
				r                     history.Term
				node                  string
				began                 int64
				ended, vacant, silent sql.NullInt64
				reason, by            sql.NullString
			)
			if err := rows.Scan(&r.Role, &r.Term, &node, &r.NodeName, &began, &ended, &reason, &vacant, &silent, &by); err != nil {
				return err
			}
			r.Node, _ = uuid.Parse(node) // the zero value if a stranger wrote it
			r.Began, r.Reason, r.By = time.UnixMicro(began), tenure.EndReason(reason.String), by.String
			r.PrecedingVacancy, r.PrecedingSilence = orUnknown(vacant), orUnknown(silent)
			if ended.Valid {
				r.Ended = time.UnixMicro(ended.Int64)
			}
			records = append(records, r)
			return nil
		}, latest, query.Role, query.Role, query.Node, query.Node, idPattern(query), since, until, query.Rows())
	})
	return records, err
}

// orUnknown returns a duration in microseconds, or -1 for a null.
func orUnknown(us sql.NullInt64) time.Duration {
	if !us.Valid || us.Int64 < 0 {
		return -1
	}
	return microseconds(us.Int64)
}

// idPattern returns the SQL pattern for the ids of a query. It is empty if Node cannot be
// the beginning of an id.
func idPattern(query history.Query) string {
	if id, ok := query.NodeID(); ok {
		return id.String()
	}
	if len(query.Node) < 4 || strings.Trim(query.Node, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return strings.ToLower(query.Node) + "%"
}
