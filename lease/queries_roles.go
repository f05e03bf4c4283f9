package lease

import (
	"strings"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// The statements on roles, their terms and the counters that announce changes.
const (
	addRolesQuery = `
{insert new} {seats} (role, lock_key, ended_at, server)
VALUES %s
{unless there}`

	newRoleRow = `(?, ?, 0, (SELECT server FROM {news} WHERE id = 1))`

	readRolesQuery = `
SELECT
    t.role,
    t.lock_key,
    t.term,
    t.holder,
    t.ended_at,
    t.ready_at,
    t.reserved_for,
    t.reserved_until,
    t.began_at,
    t.vacant_us,
    s.node_id,
    s.last_heartbeat,
    s.expires_at,
    s.lease_us,
    s.ended_at,
    {now}
FROM {seats} t
LEFT JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.role IN %s`

	readServerQuery = `
SELECT
    server,
    server_since,
    {server},
    {now},
    (SELECT COALESCE(MAX(lease_us), 0) FROM {sessions} WHERE started_at <= server_since)
FROM {news}
WHERE id = 1`

	setServerQuery = `UPDATE {news} SET server = ?, server_since = {now} WHERE id = 1 AND server = ?`
	lockRolesQuery = `SELECT role, lock_key, term, holder FROM {seats} WHERE role IN %s ORDER BY role {skip locked}`

	closeTermsQuery = `
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE ended_at IS NULL AND holder = ? AND role IN %s`

	archiveTermsQuery = `
{insert new} {history} (role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us, silent_us, ended_by)
SELECT role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us, silent_us, ended_by
FROM {seats}
WHERE term > 0 AND role IN %s
{unless there}`

	// The number is at least the time, so that it increases even if a failover has
	// lost the last terms. MySQL assigns from left to right, so columns that other
	// assignments read come last.
	beginQuery = `
UPDATE {seats}
SET
    term = {greatest}(term + 1, {clock number}),
    vacant_us = CASE WHEN ended_at = 0 THEN -1 ELSE {greatest}({now} - ended_at, 0) END,
    silent_us = CASE WHEN ended_at = 0 OR last_seen < 0 THEN -1 ELSE {greatest}({now} - COALESCE(last_seen, ended_at), 0) END,
    last_seen = NULL,
    holder = ?,
    node_id = ?,
    node_name = ?,
    host = ?,
    began_at = {now},
    ended_at = NULL,
    end_reason = NULL,
    ended_by = NULL,
    ready_at = NULL,
    reserved_for = NULL,
    reserved_until = NULL,
    server = ?
WHERE role IN %s`

	readBegunQuery = `SELECT role, term, began_at, vacant_us FROM {seats} WHERE ended_at IS NULL AND holder = ? AND role IN %s`
	reserveQuery   = `UPDATE {seats} SET holder = ?, ready_at = ? WHERE role IN %s`

	releaseQuery = `
UPDATE {seats}
SET holder = NULL, ended_at = {now}, end_reason = ?, ended_by = ?, reserved_for = ?, reserved_until = {now} + ?
WHERE ended_at IS NULL AND holder = ? AND role IN %s`

	releaseUnusedQuery = `
UPDATE {seats}
SET holder = NULL
WHERE ended_at IS NOT NULL AND holder = ? AND role IN %s`

	waitForRowsQuery = `SELECT role FROM {seats} WHERE role IN %s ORDER BY role {for change}`

	releaseUnconfirmedQuery = `
UPDATE {seats}
SET
    end_reason = CASE WHEN ended_at IS NULL THEN ? ELSE end_reason END,
    holder = NULL,
    ended_at = CASE WHEN ended_at IS NULL THEN {now} ELSE ended_at END
WHERE holder = ? AND role IN %s`

	announceVacancyQuery = `UPDATE {news} SET vacancies = vacancies + 1 WHERE id = 1`
	announceTermQuery    = `UPDATE {news} SET terms = terms + 1 WHERE id = 1`

	oldTermsQuery = `
SELECT role, term
FROM {history}
WHERE ended_at < {now} - ?
LIMIT ?`

	pruneTermQuery = `DELETE FROM {history} WHERE role = ? AND term = ?`
	rolesQuery     = `SELECT role FROM {seats}`

	holderQuery = `
SELECT t.term, t.holder
FROM {seats} t
JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.role = ? AND t.ended_at IS NULL AND s.ended_at IS NULL AND s.expires_at > {now}`

	lockKeyQuery = `
SELECT
    t.lock_key,
    CASE WHEN s.ended_at IS NULL AND s.expires_at > {now} THEN s.node_name ELSE '' END,
    COALESCE((SELECT max(o.role) FROM {seats} o WHERE o.lock_key = ? AND o.role <> t.role), '')
FROM {seats} t
LEFT JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.role = ?`

	rekeyQuery = `UPDATE {seats} SET lock_key = ? WHERE role = ?`
)

// Closing a term changes no key column. On PostgreSQL it does not wait for fenced
// transactions of the term, only for sessions that acquire the role.
var closeSkippedQueries = map[sqldb.Dialect]string{
	sqldb.PostgreSQL: `
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE role IN (
    SELECT role FROM {seats}
    WHERE ended_at IS NULL AND holder = ? AND role = ?
    FOR NO KEY UPDATE SKIP LOCKED
)`,
	sqldb.MySQL:  closeTermOfRole,
	sqldb.SQLite: closeTermOfRole,
}

const closeTermOfRole = `
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE ended_at IS NULL AND holder = ? AND role = ?`

const leadersQuery = `
SELECT
    t.role,
    t.term,
    t.node_id,
    t.node_name,
    t.host,
    t.began_at,
    s.expires_at,
    s.expires_at - {now},
    s.address,
    s.http_port,
    s.grpc_port,
    s.labels,
    s.node_name
FROM {seats} t
JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.ended_at IS NULL AND s.ended_at IS NULL AND s.expires_at > {now}`

// fenceQueries lock the role of a term, on SQLite the file, until the transaction ends.
// They return, or change, one row if the term is valid.
var fenceQueries = map[sqldb.Dialect]string{
	sqldb.PostgreSQL: fenceByRow,
	// If several servers accept writes, each one has its own row locks.
	sqldb.MySQL: strings.Replace(fenceByRow, "{share}", "    AND server = {server}\n{share}", 1),
	sqldb.SQLite: `
UPDATE {seats}
SET term = term
WHERE role = ? AND term = ? AND node_id = ? AND ended_at IS NULL`,
}

const fenceByRow = `
SELECT role
FROM {seats}
WHERE role = ? AND term = ? AND node_id = ? AND ended_at IS NULL
{share}`
