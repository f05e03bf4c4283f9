package lease

import (
	"strings"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// queries holds the statements of a backend, in its dialect and with the names of its
// tables. %s is replaced by a list of parameters.
//
// Lock order: rows of sessions, rows of roles by name, the row of counters.
type queries struct {
	names *strings.Replacer

	tables, drops []string
	columns       []string // fail if another program owns a table

	schemaVersion, identify, initialize, setVersion     string
	added                                               []addedColumn
	versionLock, clock                                  string
	supersede, nextIncarnation, insertSession           string
	incarnation, lockOwnSession, sameFile               string
	oldSessions, pruneSessions                          string
	heartbeat, countRequests, poll                      string
	endExpired, endAllExpired, readEnded, deleteSession string
	falseLeases, correctLeases                          string
	addRoles, readRoles, readServer                     string
	setServer, lockRoles, closeTerms                    string
	closeSkipped, archiveTerms, begin                   string
	readBegun, reserve, release, releaseUnused          string
	waitForRows, newRoleRow                             string
	releaseUnconfirmed, announceVacancy, announceTerm   string
	leaders, roles, nodes, history                      string
	oldTerms, pruneTerm                                 string
	holder, liveNode, namesakes, request                string
	lockKey, rekey                                      string
	takeRequests, dropRequests, fence                   string
	readAnswer, dropOffer, pruneAnswers                 string
	lockSessions, liveNodes, countLive                  string
	repairTerms                                         []string // complete the terms of rows that lost columns
}

// The row of a session contains its lease, so a heartbeat updates one row however many
// roles the node leads. The end of a session is recorded before another session acquires
// its roles: that update and a heartbeat lock the same row.
const tableSessions = `
CREATE TABLE IF NOT EXISTS {sessions} (
    incarnation bigint NOT NULL PRIMARY KEY,
    node_id varchar(36) NOT NULL,
    node_name {text} NOT NULL,
    host {text} NOT NULL,
    address {text} NOT NULL,
    http_port bigint NOT NULL,
    grpc_port bigint NOT NULL,
    labels {long text} NOT NULL, -- JSON
    started_at bigint NOT NULL,
    last_heartbeat bigint NOT NULL,
    lease_us bigint NOT NULL,
    expires_at bigint NOT NULL,
    superseded_at bigint,
    ended_at bigint,
    current_connections bigint NOT NULL DEFAULT 0,
    current_jobs bigint NOT NULL DEFAULT 0,
    cpu_usage double precision NOT NULL DEFAULT 0,
    memory_usage double precision NOT NULL DEFAULT 0
){table options}`

// A role without a holder is vacant. A role with a holder has a leader if the term has
// not ended; otherwise it is reserved for a term that may not begin yet. The unique key
// makes the term a key column. So on PostgreSQL a fenced transaction delays the begin
// of the next term but not the end of its term.
const tableRoles = `
CREATE TABLE IF NOT EXISTS {seats} (
    role {name} NOT NULL PRIMARY KEY,
    lock_key varchar(64) NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    holder bigint,
    node_id varchar(36),
    node_name {text},
    host {text},
    began_at bigint,
    ended_at bigint,
    end_reason varchar(32),
    vacant_us bigint,
    silent_us bigint,
    last_seen bigint, -- the last heartbeat in a term that its node did not end
    ready_at bigint,
    reserved_for varchar(36),
    reserved_until bigint,
    server {text} NOT NULL,
    ended_by {text}, -- the requester of the end, if any
    fence smallint NOT NULL DEFAULT 0, -- never written: the column that users who only fence have UPDATE on
    UNIQUE (lock_key),
    UNIQUE (role, term)
){table options}`

const tableHistory = `
CREATE TABLE IF NOT EXISTS {history} (
    role {name} NOT NULL,
    term bigint NOT NULL,
    node_id varchar(36) NOT NULL,
    node_name {text} NOT NULL,
    began_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    end_reason varchar(32) NOT NULL,
    vacant_us bigint,
    silent_us bigint,
    ended_by {text},
    PRIMARY KEY (role, term)
){table options}`

const tableRequests = `
CREATE TABLE IF NOT EXISTS {requests} (
    id {counter},
    kind varchar(32) NOT NULL,
    role {name} NOT NULL,
    term bigint NOT NULL,
    holder bigint NOT NULL,
    target varchar(36) NOT NULL,
    requested_by {text} NOT NULL,
    requested_at bigint NOT NULL
){table options}`

// The table has one row. Its counters increase when something changes; waiting nodes
// poll them.
const tableNews = `
CREATE TABLE IF NOT EXISTS {news} (
    id smallint NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    incarnation bigint NOT NULL,
    vacancies bigint NOT NULL,
    terms bigint NOT NULL,
    server {text} NOT NULL,
    server_since bigint NOT NULL
){table options}`

// tableNames are the names of the tables after the prefix.
var tableNames = []string{"sessions", "seats", "history", "requests", "news"}

func newQueries(dialect sqldb.Dialect, config Config) queries {
	var names []string
	for _, table := range tableNames {
		names = append(names, "{"+table+"}", dialect.Table(config.Schema, config.Prefix+table))
	}
	replacer := strings.NewReplacer(append(names, serverPlaceholders[dialect]...)...)
	sql := func(statement string) string {
		return strings.TrimSpace(dialect.Render(replacer.Replace(statement)))
	}
	q := queries{
		names:         replacer,
		schemaVersion: sql(`SELECT version FROM {news} WHERE id = 1`),
		identify:      sql(`SELECT {identity}`),
		clock:         sql(`SELECT {now}`),
		initialize: sql(`
{insert new} {news} (id, version, incarnation, vacancies, terms, server, server_since)
VALUES (1, ?, 0, 0, 0, {server}, 0)
{unless there}`),
		supersede: sql(`
UPDATE {sessions}
SET superseded_at = {now}
WHERE node_id = ? AND superseded_at IS NULL`),
		// An operator can have restored an older counter than the other rows.
		nextIncarnation: sql(`
UPDATE {news}
SET incarnation = {greatest}(
    incarnation,
    (SELECT COALESCE(MAX(s.incarnation), 0) FROM {sessions} s),
    (SELECT COALESCE(MAX(t.holder), 0) FROM {seats} t)
) + 1
WHERE id = 1`),
		incarnation: sql(`SELECT incarnation, vacancies, terms, {server} FROM {news} WHERE id = 1`),
		insertSession: sql(`
INSERT INTO {sessions} (incarnation, node_id, node_name, host, address, http_port, grpc_port, labels, started_at, last_heartbeat, lease_us, expires_at)
SELECT incarnation, ?, ?, ?, ?, CAST(? AS {integer}), CAST(? AS {integer}), ?, {now}, {now}, CAST(? AS {integer}), {now} + ?
FROM {news}
WHERE id = 1`),
		lockOwnSession: sql(`
SELECT count(*)
FROM (
    SELECT incarnation
    FROM {sessions}
    WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL AND ended_at IS NULL
    {for update}
) AS live`),
		// A lease that ends later than in two of its lengths was written under a clock that
		// was ahead. The heartbeat was at the latest now, so one length from now it is over.
		falseLeases: sql(`
SELECT incarnation
FROM {sessions}
WHERE ended_at IS NULL AND expires_at > {now} + 2 * lease_us`),
		correctLeases: sql(`
UPDATE {sessions}
SET last_heartbeat = {now}, expires_at = {now} + lease_us
WHERE ended_at IS NULL AND expires_at > {now} + 2 * lease_us AND incarnation IN %s`),
		// The row of a session has the end of its terms until another node records it.
		oldSessions: sql(`
SELECT s.incarnation
FROM {sessions} s
WHERE s.ended_at < {now} - ?
    AND NOT EXISTS (SELECT 1 FROM {seats} t WHERE t.holder = s.incarnation AND t.ended_at IS NULL)`),
		pruneSessions: sql(`DELETE FROM {sessions} WHERE incarnation IN %s`),
		// A delayed heartbeat must not shorten the lease that a later one set. An expiry
		// more than two leases ahead means that the clock was set back.
		heartbeat: sql(`
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
    AND {server} = ?{durably}`),
		countRequests: sql(`SELECT count(*) FROM {requests} WHERE holder = ?`),
		poll: sql(`
SELECT
    vacancies,
    terms,
    (SELECT min(expires_at) FROM {sessions} WHERE ended_at IS NULL) - {now}
FROM {news}
WHERE id = 1`),
		endExpired: sql(`
UPDATE {sessions}
SET ended_at = expires_at
WHERE ended_at IS NULL AND expires_at <= {now} AND incarnation IN %s`),
		endAllExpired: sql(`
UPDATE {sessions}
SET ended_at = expires_at
WHERE ended_at IS NULL AND expires_at <= {now}`),
		readEnded:     sql(`SELECT incarnation, ended_at FROM {sessions} WHERE ended_at IS NOT NULL AND incarnation IN %s`),
		deleteSession: sql(`DELETE FROM {sessions} WHERE incarnation = ?`),

		addRoles: sql(`
{insert new} {seats} (role, lock_key, ended_at, server)
VALUES %s
{unless there}`),
		newRoleRow: replacer.Replace(`(?, ?, 0, (SELECT server FROM {news} WHERE id = 1))`),
		readRoles: sql(`
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
WHERE t.role IN %s`),
		readServer: sql(`
SELECT
    server,
    server_since,
    {server},
    {now},
    (SELECT COALESCE(MAX(lease_us), 0) FROM {sessions} WHERE started_at <= server_since)
FROM {news}
WHERE id = 1`),
		setServer: sql(`UPDATE {news} SET server = ?, server_since = {now} WHERE id = 1 AND server = ?`),
		lockRoles: sql(`SELECT role, lock_key, term, holder FROM {seats} WHERE role IN %s ORDER BY role {skip locked}`),
		closeTerms: sql(`
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE ended_at IS NULL AND holder = ? AND role IN %s`),
		archiveTerms: sql(`
{insert new} {history} (role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us, silent_us, ended_by)
SELECT role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us, silent_us, ended_by
FROM {seats}
WHERE term > 0 AND role IN %s
{unless there}`),
		// The number is at least the time, so that it increases even if a failover has
		// lost the last terms. MySQL assigns from left to right, so columns that other
		// assignments read come last.
		begin: sql(`
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
WHERE role IN %s`),
		readBegun: sql(`SELECT role, term, began_at, vacant_us FROM {seats} WHERE ended_at IS NULL AND holder = ? AND role IN %s`),
		reserve:   sql(`UPDATE {seats} SET holder = ?, ready_at = ? WHERE role IN %s`),
		release: sql(`
UPDATE {seats}
SET holder = NULL, ended_at = {now}, end_reason = ?, ended_by = ?, reserved_for = ?, reserved_until = {now} + ?
WHERE ended_at IS NULL AND holder = ? AND role IN %s`),
		releaseUnused: sql(`
UPDATE {seats}
SET holder = NULL
WHERE ended_at IS NOT NULL AND holder = ? AND role IN %s`),
		waitForRows: sql(`SELECT role FROM {seats} WHERE role IN %s ORDER BY role {for change}`),
		releaseUnconfirmed: sql(`
UPDATE {seats}
SET
    end_reason = CASE WHEN ended_at IS NULL THEN ? ELSE end_reason END,
    holder = NULL,
    ended_at = CASE WHEN ended_at IS NULL THEN {now} ELSE ended_at END
WHERE holder = ? AND role IN %s`),
		announceVacancy: sql(`UPDATE {news} SET vacancies = vacancies + 1 WHERE id = 1`),
		announceTerm:    sql(`UPDATE {news} SET terms = terms + 1 WHERE id = 1`),

		leaders: sql(leadersQuery),
		history: sql(historyQuery),
		oldTerms: sql(`
SELECT role, term
FROM {history}
WHERE ended_at < {now} - ?
LIMIT ?`),
		pruneTerm: sql(`DELETE FROM {history} WHERE role = ? AND term = ?`),
		roles:     sql(`SELECT role FROM {seats}`),
		nodes: sql(`
SELECT node_id, node_name, host
FROM {sessions}
WHERE ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}
ORDER BY node_name, node_id`),
		holder: sql(`
SELECT t.term, t.holder
FROM {seats} t
JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.role = ? AND t.ended_at IS NULL AND s.ended_at IS NULL AND s.expires_at > {now}`),
		lockKey: sql(`
SELECT
    t.lock_key,
    CASE WHEN s.ended_at IS NULL AND s.expires_at > {now} THEN s.node_name ELSE '' END,
    COALESCE((SELECT max(o.role) FROM {seats} o WHERE o.lock_key = ? AND o.role <> t.role), '')
FROM {seats} t
LEFT JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.role = ?`),
		rekey: sql(`UPDATE {seats} SET lock_key = ? WHERE role = ?`),
		liveNode: sql(`
SELECT incarnation
FROM {sessions}
WHERE node_id = ? AND ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}
ORDER BY incarnation`),
		readAnswer: sql(`SELECT kind FROM {requests} WHERE holder = 0 AND role = ? AND term = ?`),
		dropOffer:  sql(`DELETE FROM {requests} WHERE role = ? AND term = ?`),
		// A requester that gave up leaves the answer behind.
		pruneAnswers: sql(`DELETE FROM {requests} WHERE holder = 0 AND requested_at NOT BETWEEN {now} - 60000000 AND {now} + 60000000`),
		namesakes: sql(`
SELECT node_id, node_name, host, expires_at - {now}
FROM {sessions}
WHERE node_name = ? AND node_id <> ? AND ended_at IS NULL AND superseded_at IS NULL AND expires_at > {now}`),
		request: sql(`
INSERT INTO {requests} (kind, role, term, holder, target, requested_by, requested_at)
VALUES (?, ?, ?, ?, ?, ?, {now})`),
		takeRequests: sql(`
SELECT r.id, r.kind, r.role, r.target, r.requested_by, r.requested_at, r.term, t.term
FROM {requests} r
LEFT JOIN {seats} t ON t.role = r.role AND t.holder = r.holder AND t.ended_at IS NULL
WHERE r.holder = ?
ORDER BY r.id`),
		dropRequests: sql(`DELETE FROM {requests} WHERE holder = ? AND id <= ?`),
		fence:        sql(fenceQueries[dialect]),
		lockSessions: sql(`LOCK TABLE {sessions} IN ACCESS EXCLUSIVE MODE`),
		liveNodes: sql(`
SELECT node_name, host
FROM {sessions}
WHERE ended_at IS NULL AND expires_at > {now}
ORDER BY node_name`),
	}
	q.countLive = sql(`SELECT count(*) FROM {sessions} WHERE ended_at IS NULL AND expires_at > {now}`)
	q.repairTerms = []string{sql(`
UPDATE {seats}
SET term = (SELECT max(h.term) FROM {history} h WHERE h.role = {seats}.role)
WHERE term < (SELECT max(h.term) FROM {history} h WHERE h.role = {seats}.role)`), sql(`
UPDATE {seats}
SET
    node_id = COALESCE(node_id, ''),
    node_name = COALESCE(node_name, ''),
    host = COALESCE(host, ''),
    began_at = COALESCE(began_at, ended_at, 0),
    end_reason = CASE WHEN ended_at IS NULL AND holder IS NOT NULL THEN NULL ELSE COALESCE(end_reason, '` + string(history.EndLeaseExpired) + `') END,
    ended_at = CASE WHEN holder IS NULL THEN COALESCE(ended_at, {now}) ELSE ended_at END
WHERE term > 0`)}
	if dialect == sqldb.SQLite {
		q.sameFile = sql(`
SELECT count(*)
FROM main.{sessions} AS own
JOIN ` + sqldb.PathSchema + `.{sessions} AS found USING (incarnation, node_id, last_heartbeat)
WHERE own.incarnation = ? AND own.node_id = ?`)
	}
	if dialect == sqldb.PostgreSQL {
		q.versionLock = sql(`SELECT pg_advisory_xact_lock(hashtextextended('tenure lease tables', 0))`)
		// Closing a term changes no key column, so it does not wait for fenced
		// transactions of the term, only for sessions that acquire the role.
		q.closeSkipped = sql(`
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE role IN (
    SELECT role FROM {seats}
    WHERE ended_at IS NULL AND holder = ? AND role = ?
    FOR NO KEY UPDATE SKIP LOCKED
)`)
	} else {
		q.closeSkipped = sql(`
UPDATE {seats}
SET ended_at = ?, end_reason = ?, last_seen = ?
WHERE ended_at IS NULL AND holder = ? AND role = ?`)
	}
	for _, table := range []string{tableSessions, tableRoles, tableHistory, tableRequests, tableNews} {
		q.tables = append(q.tables, sql(table))
	}
	all := []string{"{sessions}", "{seats}", "{history}", "{requests}", "{news}"}
	if dialect == sqldb.MySQL {
		// No transaction undoes a removal. One statement waits for the transactions that
		// use any of the tables before it removes the first, and the version goes last.
		all = []string{strings.Join(all, ", ")}
	}
	for _, tables := range all {
		q.drops = append(q.drops, sql("DROP TABLE IF EXISTS "+tables))
	}
	q.added = addedColumns(sql)
	q.setVersion = sql("UPDATE {news} SET version = ? WHERE version < ?")
	for _, statement := range columnsOfTables {
		q.columns = append(q.columns, sql(statement))
	}
	return q
}

// columnsOfTables returns no rows. It fails if a table of the same name belongs to
// another program, which CREATE TABLE IF NOT EXISTS does not detect.
var columnsOfTables = []string{
	`SELECT incarnation, node_name, labels, lease_us, superseded_at FROM {sessions} WHERE 1 = 0`,
	`SELECT lock_key, holder, ready_at, reserved_until, ended_by FROM {seats} WHERE 1 = 0`,
	`SELECT node_name, began_at, end_reason, vacant_us, silent_us, ended_by FROM {history} WHERE 1 = 0`,
	`SELECT kind, holder, requested_by, requested_at FROM {requests} WHERE 1 = 0`,
}

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
    s.labels
FROM {seats} t
JOIN {sessions} s ON s.incarnation = t.holder
WHERE t.ended_at IS NULL AND s.ended_at IS NULL AND s.expires_at > {now}`

// serverPlaceholders extends the placeholders of the dialects. The identity of a server
// changes when a replica is promoted, which can lack the last commits, but not when the
// server restarts.
var serverPlaceholders = map[sqldb.Dialect][]string{
	sqldb.PostgreSQL: {
		"{server}", `(
    SELECT system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
    FROM pg_control_system()
)`,
		"{identity}", "version(), CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE '' END",
		"{durably}", " AND set_config('synchronous_commit', " + sqldb.DurableCommit + ", true) <> ''",
		"{integer}", "bigint",
		"{for change}", "FOR NO KEY UPDATE", // fenced transactions do not block it
	},
	sqldb.SQLite: {
		"{server}", "''",
		"{identity}", "sqlite_version(), (SELECT coalesce(max(file), '') FROM pragma_database_list WHERE name = 'main')",
		"{durably}", "",
		"{integer}", "INTEGER",
		"{for change}", "",
	},
	sqldb.MySQL: {
		"{server}", serverName,
		"{identity}", "version(), ''",
		"{durably}", "",
		"{integer}", "SIGNED",
		"{for change}", "FOR UPDATE",
	},
}

// serverName is the SQL that identifies a MySQL server.
const serverName = "concat(@@hostname, ':', @@port, ':', @@server_id)"

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
