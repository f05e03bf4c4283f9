package store

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// maxNamespaces is how many namespaces one statement handles. Every version of
// SQLite accepts twice as many parameters.
const maxNamespaces = 400

// queries holds the statements of a store. fill completes them for a number of namespaces.
// {ns} is replaced by their list. The comments name the parameters.
type queries struct {
	dialect sqldb.Dialect

	register   string // (namespace, candidate)...
	unregister string // namespace, candidate
	candidates string // namespace

	renew      string // candidate, candidate, namespaces
	acquire    string // candidate, four times; namespaces
	assignTerm string // namespaces
	correct    string // namespaces
	add        string // namespaces
	release    string // namespace, candidate
	lockFile   string // namespace

	leaders, leadersLocked, leadersShared string // namespaces

	tables  []table
	columns string // name of a table

	filled sync.Map // from statement to string
}

// placeholders returns the SQL of a dialect for these tables. On SQLite times are text, so
// all users of the tables must write the same number of digits.
func placeholders(dialect sqldb.Dialect, config Config) *strings.Replacer {
	microseconds := (config.Window + time.Microsecond - 1) / time.Microsecond
	milliseconds := (config.Window + time.Millisecond - 1) / time.Millisecond
	replacements := []string{
		"{candidates}", dialect.Table(config.Schema, config.Prefix+tableCandidate),
		"{leaders}", dialect.Table(config.Schema, config.Prefix+tableLeader),
	}
	switch dialect {
	case sqldb.PostgreSQL:
		replacements = append(replacements,
			"{clock}", "clock_timestamp()",
			"{expiry}", fmt.Sprintf("clock_timestamp() + interval '%d.%06d seconds'", microseconds/1e6, microseconds%1e6),
			"{expires}", "CAST(extract(epoch FROM lease_expires_at) * 1000000 AS bigint)",
			"{updated}", "CAST(extract(epoch FROM updated_at) * 1000000 AS bigint)",
			"{again}", "clock_timestamp() + (lease_expires_at - updated_at)",
			"{shared}", "FOR SHARE", // also changes of columns outside the key must wait
			"{namespace type}", "varchar(255)",
			"{id type}", "varchar(36)",
			"{time type}", "timestamptz",
			// Room for the next version of a row in its page: its index need not change.
			"{options}", " WITH (fillfactor = 50)",
			"{or update}", updateOnConflict,
			"{or ignore}", "ON CONFLICT DO NOTHING",
		)
	case sqldb.SQLite:
		replacements = append(replacements,
			"{clock}", "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'",
			"{expiry}", fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '+%d.%03d seconds') || '000'", milliseconds/1e3, milliseconds%1e3),
			"{expires}", sqliteMicroseconds("lease_expires_at"),
			"{updated}", sqliteMicroseconds("updated_at"),
			"{again}", fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (((%s) - (%s)) / 1000000.0) || ' seconds') || '000'",
				sqliteMicroseconds("lease_expires_at"), sqliteMicroseconds("updated_at")),
			"{shared}", "",
			"{namespace type}", "varchar(255)",
			"{id type}", "varchar(36)",
			"{time type}", "datetime",
			"{options}", "",
			"{or update}", updateOnConflict,
			"{or ignore}", "ON CONFLICT DO NOTHING",
		)
	case sqldb.MySQL:
		replacements = append(replacements,
			"{clock}", "UTC_TIMESTAMP(6)",
			"{expiry}", fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d MICROSECOND", microseconds),
			"{expires}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_expires_at)",
			"{updated}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at)",
			"{again}", "UTC_TIMESTAMP(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, updated_at, lease_expires_at) MICROSECOND",
			"{shared}", "LOCK IN SHARE MODE",
			// Bytes for 255 characters: every collation common to all versions treats some
			// different names as equal.
			"{namespace type}", "varbinary(1020)",
			"{id type}", "varchar(36) CHARACTER SET ascii COLLATE ascii_bin",
			"{time type}", "datetime(6)",
			"{options}", " ENGINE = InnoDB",
			"{or update}", `ON DUPLICATE KEY UPDATE
    last_heartbeat_at = VALUES(last_heartbeat_at),
    expires_at = VALUES(expires_at)`,
			// INSERT IGNORE would also ignore an overlong name.
			"{or ignore}", "ON DUPLICATE KEY UPDATE term = term",
		)
	}
	return strings.NewReplacer(replacements...)
}

// sqliteMicroseconds is a time in microseconds since 1970. Other programs write
// microseconds; a date function would round them up.
func sqliteMicroseconds(column string) string {
	return fmt.Sprintf(`CAST(strftime('%%s', substr(%[1]s, 1, 19)) AS INTEGER) * 1000000
        + CAST(substr(%[1]s || '.000000', 21, 6) AS INTEGER)`, column)
}

const updateOnConflict = `ON CONFLICT (ns, candidate_id) DO UPDATE SET
    last_heartbeat_at = excluded.last_heartbeat_at,
    expires_at = excluded.expires_at`

// statement is a query, filled for a number of namespaces.
type statement struct {
	query string
	n     int
}

func newQueries(dialect sqldb.Dialect, config Config) *queries {
	words := placeholders(dialect, config)
	return &queries{
		dialect: dialect,

		register: words.Replace(`
INSERT INTO {candidates} (ns, candidate_id, last_heartbeat_at, expires_at)
VALUES {rows of (?, ?, {clock}, {expiry})}
{or update}`),

		unregister: words.Replace(`
DELETE FROM {candidates}
WHERE ns = ? AND candidate_id = ?`),

		candidates: words.Replace(`
SELECT ns, candidate_id
FROM {candidates}
WHERE ns = ? AND expires_at > {clock}`),

		// An expired lease is not renewed but acquired again, with a new term.
		renew: words.Replace(`
UPDATE {leaders} SET
    lease_expires_at = {expiry},
    updated_at = {clock}
WHERE leader_id = ?
    AND term_leader_id = ?
    AND lease_expires_at > {clock}
    AND ns IN {ns}`),

		// A leader elected by another program has had a term too. MySQL changes columns
		// one after the other, so the term comes first.
		acquire: words.Replace(`
UPDATE {leaders} SET
    term = {greatest}(term + 1 + CASE
        WHEN leader_id <> ? AND (term_leader_id IS NULL OR term_leader_id <> leader_id) THEN 1
        ELSE 0
    END, {clock number}),
    term_leader_id = ?,
    leader_id = ?,
    lease_expires_at = {expiry},
    updated_at = {clock}
WHERE (leader_id IS NULL OR leader_id = ? OR lease_expires_at IS NULL OR lease_expires_at <= {clock})
    AND ns IN {ns}`),

		assignTerm: words.Replace(`
UPDATE {leaders} SET
    term = {greatest}(term + 1, {clock number}),
    term_leader_id = leader_id
WHERE leader_id IS NOT NULL
    AND (term_leader_id IS NULL OR term_leader_id <> leader_id)
    AND ns IN {ns}`),

		// One length from now: see leaderRow.isFalse.
		correct: words.Replace(`
UPDATE {leaders} SET
    lease_expires_at = {again},
    updated_at = {clock}
WHERE ({expires}) - {now} > 2 * (({expires}) - ({updated}))
    AND ns IN {ns}`),

		add: words.Replace(`
INSERT INTO {leaders} (ns, updated_at)
VALUES {rows of (?, {clock})}
{or ignore}`),

		release: words.Replace(`
UPDATE {leaders} SET
    leader_id = NULL,
    lease_expires_at = NULL,
    updated_at = {clock}
WHERE ns = ? AND leader_id = ?`),

		// On SQLite a writing statement locks the file even if it changes no row.
		lockFile: words.Replace(`
UPDATE {leaders} SET term = term
WHERE ns = ?`),

		leaders:       words.Replace(selectLeaders),
		leadersLocked: words.Replace(selectLeaders + "\nORDER BY ns\n{for update}"),
		leadersShared: words.Replace(selectLeaders + "\n{shared}"),

		tables:  newTables(words, config),
		columns: readColumns[dialect],
	}
}

const selectLeaders = `
SELECT
    ns,
    leader_id,
    term,
    CASE WHEN term_leader_id = leader_id THEN 1 ELSE 0 END,
    COALESCE({expires}, 0),
    COALESCE({expires}, 0) - {now},
    COALESCE(({expires}) - ({updated}), 0)
FROM {leaders}
WHERE ns IN {ns}`

// fill renders a query for n namespaces. It caches the statements for one namespace
// and for the longest list.
func (q *queries) fill(query string, n int) string {
	key := statement{query, n}
	if known, ok := q.filled.Load(key); ok {
		return known.(string)
	}
	if before, rest, found := strings.Cut(query, "{rows of "); found {
		row, after, _ := strings.Cut(rest, "}")
		query = before + strings.Repeat(row+", ", n-1) + row + after
	}
	query = q.dialect.Render(strings.Replace(query, "{ns}", parameterList(n), 1))
	if n == 1 || n == maxNamespaces {
		q.filled.Store(key, query)
	}
	return query
}

// arguments returns before, followed by the namespaces.
func arguments(namespaces []string, before ...any) []any {
	args := make([]any, 0, len(before)+len(namespaces))
	args = append(args, before...)
	for _, namespace := range namespaces {
		args = append(args, namespace)
	}
	return args
}

// parameterList returns a list of n parameters.
func parameterList(n int) string {
	return "(" + strings.Repeat("?, ", n-1) + "?)"
}
