package lease

import (
	"strings"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

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

// placeholders returns the replacer of a backend's placeholders: the names of its tables
// and the parts of its dialect.
//
// Lock order of all statements: rows of sessions, rows of roles by name, the row of
// counters.
func placeholders(dialect sqldb.Dialect, config Config) *strings.Replacer {
	var names []string
	for _, table := range tableNames {
		names = append(names, "{"+table+"}", dialect.Table(config.Schema, config.Prefix+table))
	}
	return strings.NewReplacer(append(names, serverPlaceholders[dialect]...)...)
}

// sql returns a statement in the backend's dialect and with the names of its tables. %s in
// it is replaced later by a list of parameters.
func (b *Backend) sql(statement string) string {
	return strings.TrimSpace(b.db.Dialect.Render(b.names.Replace(statement)))
}

// tables returns the statements that create the tables, in the order of tableNames.
func (b *Backend) tables() (statements []string) {
	for _, table := range []string{tableSessions, tableRoles, tableHistory, tableRequests, tableNews} {
		statements = append(statements, b.sql(table))
	}
	return statements
}

// drops returns the statements that remove the tables.
func (b *Backend) drops() (statements []string) {
	all := []string{"{sessions}", "{seats}", "{history}", "{requests}", "{news}"}
	if b.db.Dialect == sqldb.MySQL {
		// No transaction undoes a removal. One statement waits for the transactions that
		// use any of the tables before it removes the first, and the version goes last.
		all = []string{strings.Join(all, ", ")}
	}
	for _, tables := range all {
		statements = append(statements, b.sql("DROP TABLE IF EXISTS "+tables))
	}
	return statements
}

// The statements on the version and the identity of the tables.
const (
	schemaVersionQuery = `SELECT version FROM {news} WHERE id = 1`
	identifyQuery      = `SELECT {identity}`
	clockQuery         = `SELECT {now}`

	initializeQuery = `
{insert new} {news} (id, version, incarnation, vacancies, terms, server, server_since)
VALUES (1, ?, 0, 0, 0, {server}, 0)
{unless there}`

	setVersionQuery = "UPDATE {news} SET version = ? WHERE version < ?"

	// On PostgreSQL only one node at a time creates the tables.
	versionLockQuery = `SELECT pg_advisory_xact_lock(hashtextextended('tenure lease tables', 0))`
)

// repairTermsQueries complete the terms of rows that lost columns.
var repairTermsQueries = []string{`
UPDATE {seats}
SET term = (SELECT max(h.term) FROM {history} h WHERE h.role = {seats}.role)
WHERE term < (SELECT max(h.term) FROM {history} h WHERE h.role = {seats}.role)`, `
UPDATE {seats}
SET
    node_id = COALESCE(node_id, ''),
    node_name = COALESCE(node_name, ''),
    host = COALESCE(host, ''),
    began_at = COALESCE(began_at, ended_at, 0),
    end_reason = CASE WHEN ended_at IS NULL AND holder IS NOT NULL THEN NULL ELSE COALESCE(end_reason, '` + string(history.EndLeaseExpired) + `') END,
    ended_at = CASE WHEN holder IS NULL THEN COALESCE(ended_at, {now}) ELSE ended_at END
WHERE term > 0`}

// columnsOfTables returns no rows. It fails if a table of the same name belongs to
// another program, which CREATE TABLE IF NOT EXISTS does not detect.
var columnsOfTables = []string{
	`SELECT incarnation, node_name, labels, lease_us, superseded_at FROM {sessions} WHERE 1 = 0`,
	`SELECT lock_key, holder, ready_at, reserved_until, ended_by FROM {seats} WHERE 1 = 0`,
	`SELECT node_name, began_at, end_reason, vacant_us, silent_us, ended_by FROM {history} WHERE 1 = 0`,
	`SELECT kind, holder, requested_by, requested_at FROM {requests} WHERE 1 = 0`,
}

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
