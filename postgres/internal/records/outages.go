package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
)

// The first session after an outage is recorded with the begin of the outage. If several
// sessions opened at the same time, all may be. A role stood still if its term ended in
// the outage, and no other term began before the outage was over. An open term of a dead
// node ended with the node: the role was vacant before.
//
// While the clock is ahead, a session can seem to end an outage as long as the clock is
// ahead. Once the clock is right, that is no outage: it ends in the future, a heartbeat has a
// time in it, or a change that was recorded later has an earlier time.
const readOutages = `
WITH recorded AS (
    SELECT outage_since AS began, min(at) AS ended, min(id) AS id
    FROM {node_history}
    WHERE outage_since IS NOT NULL
        AND ($1::timestamptz IS NULL OR at >= $1)
        AND ($2::timestamptz IS NULL OR outage_since <= $2)
    GROUP BY outage_since
), outages AS MATERIALIZED (
    SELECT r.began, r.ended
    FROM recorded r
    CROSS JOIN (SELECT greatest(interval '1 minute', max(lease_ms) * interval '1 millisecond') AS slack FROM {nodes}) l
    WHERE r.ended <= clock_timestamp() + l.slack
        AND NOT EXISTS (SELECT FROM {nodes} n WHERE n.last_heartbeat > r.began + l.slack AND n.last_heartbeat < r.ended - l.slack)
        AND NOT EXISTS (SELECT FROM {node_history} h WHERE h.id > r.id AND h.at < r.ended - l.slack)
    ORDER BY r.began DESC
    LIMIT $3
), ended AS (
    SELECT role, term, acquired_at, ended_at, end_reason
    FROM {history}
    WHERE end_reason IN ('crashed', 'lease_expired', 'server_changed')
        AND ended_at >= (SELECT min(began) FROM outages)
    UNION ALL
    SELECT
        t.role,
        t.term,
        t.acquired_at,
        coalesce(t.ended_at, {term_end}(n.last_heartbeat, n.lease_ms, n.died_at, NULL)),
        coalesce(t.end_reason, '')
    FROM {terms} t
    LEFT JOIN {nodes} n ON n.id = t.node_id AND n.incarnation = t.incarnation AND n.died_at IS NOT NULL
    WHERE t.term > 0 AND coalesce(t.end_reason, 'crashed') IN ('crashed', 'lease_expired', 'server_changed')
)
SELECT
    o.began,
    o.ended,
    coalesce(bool_or(e.end_reason = 'server_changed'), false),
    coalesce(array_agg(DISTINCT e.role ORDER BY e.role) FILTER (WHERE e.role IS NOT NULL), '{}')
FROM outages o
LEFT JOIN ended e ON e.acquired_at <= o.began
    AND (e.ended_at IS NULL OR e.ended_at >= o.began)
    AND NOT EXISTS (
        SELECT FROM {history} h
        WHERE h.role = e.role AND h.term > e.term AND h.acquired_at < o.ended
        UNION ALL
        SELECT FROM {terms} t
        WHERE t.role = e.role AND t.term > e.term AND t.acquired_at < o.ended
    )
GROUP BY o.began, o.ended
ORDER BY o.began DESC`

// Outages is the method of the backend with this name.
func (rs *Records) Outages(ctx context.Context, query history.Query) ([]history.Outage, error) {
	return readRecords(ctx, rs, "read outages", readOutages, func(row pgx.CollectableRow) (history.Outage, error) {
		var o history.Outage
		err := row.Scan(&o.Began, &o.Ended, &o.ServerChanged, &o.Roles)
		return o, err
	}, orNull(query.Since), orNull(query.Until), query.Rows())
}
