package lease

import "github.com/exactly-one/tenure/lease/internal/sqldb"

// The statements on sessions and on the requests to them.
const (
	supersedeQuery = `
UPDATE {sessions}
SET superseded_at = {now}
WHERE node_id = ? AND superseded_at IS NULL`

	// An operator can have restored an older counter than the other rows.
	nextIncarnationQuery = `
UPDATE {news}
SET incarnation = {greatest}(
    incarnation,
    (SELECT COALESCE(MAX(s.incarnation), 0) FROM {sessions} s),
    (SELECT COALESCE(MAX(t.holder), 0) FROM {seats} t)
) + 1
WHERE id = 1`

	incarnationQuery = `SELECT incarnation, vacancies, terms, {server} FROM {news} WHERE id = 1`

	insertSessionQuery = `
INSERT INTO {sessions} (incarnation, node_id, node_name, host, address, http_port, grpc_port, labels, started_at, last_heartbeat, lease_us, expires_at)
SELECT incarnation, ?, ?, ?, ?, CAST(? AS {integer}), CAST(? AS {integer}), ?, {now}, {now}, CAST(? AS {integer}), {now} + ?
FROM {news}
WHERE id = 1`

	lockOwnSessionQuery = `
SELECT count(*)
FROM (
    SELECT incarnation
    FROM {sessions}
    WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL AND ended_at IS NULL
    {for update}
) AS live`

	namesakesQuery = `
SELECT node_id, node_name, host, expires_at - {now}
FROM {sessions}
WHERE node_name = ? AND node_id <> ? AND ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}`

	// A lease that ends later than in two of its lengths was written under a clock that
	// was ahead. The heartbeat was at the latest now, so one length from now it is over.
	falseLeasesQuery = `
SELECT incarnation
FROM {sessions}
WHERE ended_at IS NULL AND expires_at > {now} + 2 * lease_us`

	correctLeasesQuery = `
UPDATE {sessions}
SET last_heartbeat = {now}, expires_at = {now} + lease_us
WHERE ended_at IS NULL AND expires_at > {now} + 2 * lease_us AND incarnation IN %s`

	// The row of a session has the end of its terms until another node records it.
	oldSessionsQuery = `
SELECT s.incarnation
FROM {sessions} s
WHERE s.ended_at < {now} - ?
    AND NOT EXISTS (SELECT 1 FROM {seats} t WHERE t.holder = s.incarnation AND t.ended_at IS NULL)`

	pruneSessionsQuery = `DELETE FROM {sessions} WHERE incarnation IN %s`

	// A delayed heartbeat must not shorten the lease that a later one set. An expiry
	// more than two leases ahead means that the clock was set back.
	heartbeatQuery = `
UPDATE {sessions}
SET
    last_heartbeat = {now},
    expires_at = CASE
        WHEN expires_at BETWEEN {now} + lease_us AND {now} + 2 * lease_us THEN expires_at
        ELSE {now} + lease_us
    END,
    current_connections = ?,
    current_jobs = ?,
    cpu_usage = ?,
    memory_usage = ?
WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL AND ended_at IS NULL
    AND {server} = ?{durably}`

	countRequestsQuery = `SELECT count(*) FROM {requests} WHERE holder = ?`

	pollQuery = `
SELECT
    vacancies,
    terms,
    (SELECT min(expires_at) FROM {sessions} WHERE ended_at IS NULL) - {now}
FROM {news}
WHERE id = 1`

	endExpiredQuery = `
UPDATE {sessions}
SET ended_at = expires_at
WHERE ended_at IS NULL AND expires_at <= {now} AND incarnation IN %s`

	endAllExpiredQuery = `
UPDATE {sessions}
SET ended_at = expires_at
WHERE ended_at IS NULL AND expires_at <= {now}`

	readEndedQuery     = `SELECT incarnation, ended_at FROM {sessions} WHERE ended_at IS NOT NULL AND incarnation IN %s`
	deleteSessionQuery = `DELETE FROM {sessions} WHERE incarnation = ?`

	nodesQuery = `
SELECT node_id, node_name, host
FROM {sessions}
WHERE ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}
ORDER BY node_name, node_id`

	liveNodeQuery = `
SELECT incarnation
FROM {sessions}
WHERE node_id = ? AND ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}
ORDER BY incarnation`

	liveNodesQuery = `
SELECT node_name, host
FROM {sessions}
WHERE ended_at IS NULL AND expires_at > {now}
ORDER BY node_name`

	lockSessionsQuery = `LOCK TABLE {sessions} IN ACCESS EXCLUSIVE MODE`

	requestQuery = `
INSERT INTO {requests} (kind, role, term, holder, target, requested_by, requested_at)
VALUES (?, ?, ?, ?, ?, ?, {now})`

	takeRequestsQuery = `
SELECT r.id, r.kind, r.role, r.target, r.requested_by, r.requested_at, r.term, t.term
FROM {requests} r
LEFT JOIN {seats} t ON t.role = r.role AND t.holder = r.holder AND t.ended_at IS NULL
WHERE r.holder = ?
ORDER BY r.id`

	dropRequestsQuery = `DELETE FROM {requests} WHERE holder = ? AND id <= ?`
	readAnswerQuery   = `SELECT kind FROM {requests} WHERE holder = 0 AND role = ? AND term = ?`
	dropOfferQuery    = `DELETE FROM {requests} WHERE role = ? AND term = ?`

	// A requester that gave up leaves the answer behind.
	pruneAnswersQuery = `DELETE FROM {requests} WHERE holder = 0 AND requested_at NOT BETWEEN {now} - 60000000 AND {now} + 60000000`

	countLiveQuery = `SELECT count(*) FROM {sessions} WHERE ended_at IS NULL AND expires_at > {now}`
)

// sameFileQuery finds the session's row in the file at the path too. It is for SQLite.
const sameFileQuery = `
SELECT count(*)
FROM main.{sessions} AS own
JOIN ` + sqldb.PathSchema + `.{sessions} AS found USING (incarnation, node_id, last_heartbeat)
WHERE own.incarnation = ? AND own.node_id = ?`
