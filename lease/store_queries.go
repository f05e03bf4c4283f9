package lease

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxNamespaces is how many namespaces one statement is about: twice as many
// parameters are within what every version of SQLite takes.
const maxNamespaces = 400

// storeQueries are the statements of a store, all but what depends on the number
// of namespaces. In them {ns} is the list of namespaces.
type storeQueries struct {
	dialect Dialect

	touch      string // (namespace, candidate)...
	leave      string // namespace, candidate
	candidates string // namespace

	renew    string // candidate, candidate, namespaces
	take     string // candidate three times, candidate, namespaces
	count    string // namespaces
	add      string // namespaces
	vacate   string // namespace, candidate
	lockFile string // namespace

	seats, seatsLocked, seatsShared string // namespaces

	tables  []storeTable
	columns string // table
	turn    string // lock, seconds to wait
	endTurn string // lock

	filled sync.Map // of filling to string: the statements for full lists
}

// storeWords are what the dialects say differently about these tables, which
// keep times as the Python library does. On SQLite they are compared as text, so
// that the form must be the same to the last digit.
func storeWords(dialect Dialect, config StoreConfig) *strings.Replacer {
	microseconds := (config.Window + time.Microsecond - 1) / time.Microsecond
	milliseconds := (config.Window + time.Millisecond - 1) / time.Millisecond
	words := []string{
		"{candidates}", dialect.quote(config.Prefix + tableCandidate),
		"{leaders}", dialect.quote(config.Prefix + tableLeader),
	}
	switch dialect {
	case PostgreSQL:
		words = append(words,
			"{clock}", "clock_timestamp()",
			"{expiry}", fmt.Sprintf("clock_timestamp() + interval '%d.%06d seconds'", microseconds/1e6, microseconds%1e6),
			"{expires}", "CAST(extract(epoch FROM lease_expires_at) * 1000000 AS bigint)",
			"{shared}", "FOR SHARE", // a change of no key column must wait as well
			"{namespace type}", "varchar(255)",
			"{id type}", "varchar(36)",
			"{time type}", "timestamptz",
			// Room for the next version of a row, so that its index stays as it is.
			"{options}", " WITH (fillfactor = 50)",
			"{or touch}", touchOnConflict,
			"{or leave it}", "ON CONFLICT DO NOTHING",
		)
	case SQLite:
		words = append(words,
			"{clock}", "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'",
			"{expiry}", fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '+%d.%03d seconds') || '000'", milliseconds/1e3, milliseconds%1e3),
			// The library writes microseconds; a date function would round them up.
			"{expires}", `CAST(strftime('%s', substr(lease_expires_at, 1, 19)) AS INTEGER) * 1000000
        + CAST(substr(lease_expires_at || '.000000', 21, 6) AS INTEGER)`,
			"{shared}", "",
			"{namespace type}", "varchar(255)",
			"{id type}", "varchar(36)",
			"{time type}", "datetime",
			"{options}", "",
			"{or touch}", touchOnConflict,
			"{or leave it}", "ON CONFLICT DO NOTHING",
		)
	case MySQL:
		words = append(words,
			"{clock}", "UTC_TIMESTAMP(6)",
			"{expiry}", fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d MICROSECOND", microseconds),
			"{expires}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_expires_at)",
			"{shared}", "LOCK IN SHARE MODE",
			// Bytes, for 255 characters: no collation that all versions have keeps
			// all different names apart.
			"{namespace type}", "varbinary(1020)",
			"{id type}", "varchar(36) CHARACTER SET ascii COLLATE ascii_bin",
			"{time type}", "datetime(6)",
			"{options}", " ENGINE = InnoDB",
			"{or touch}", `ON DUPLICATE KEY UPDATE
    last_heartbeat_at = VALUES(last_heartbeat_at),
    expires_at = VALUES(expires_at)`,
			// Not INSERT IGNORE, which would also ignore a name that is too long.
			"{or leave it}", "ON DUPLICATE KEY UPDATE term = term",
		)
	}
	return strings.NewReplacer(words...)
}

const touchOnConflict = `ON CONFLICT (ns, candidate_id) DO UPDATE SET
    last_heartbeat_at = excluded.last_heartbeat_at,
    expires_at = excluded.expires_at`

// filling is a statement and the number of namespaces that it is for.
type filling struct {
	query string
	n     int
}

func newStoreQueries(dialect Dialect, config StoreConfig) *storeQueries {
	words := storeWords(dialect, config)
	return &storeQueries{
		dialect: dialect,

		touch: words.Replace(`
INSERT INTO {candidates} (ns, candidate_id, last_heartbeat_at, expires_at)
VALUES {rows of (?, ?, {clock}, {expiry})}
{or touch}`),

		leave: words.Replace(`
DELETE FROM {candidates}
WHERE ns = ? AND candidate_id = ?`),

		candidates: words.Replace(`
SELECT ns, candidate_id
FROM {candidates}
WHERE ns = ? AND expires_at > {clock}`),

		// A lease that has run out is not renewed but taken again, with a new term.
		renew: words.Replace(`
UPDATE {leaders} SET
    lease_expires_at = {expiry},
    updated_at = {clock}
WHERE leader_id = ?
    AND term_leader_id = ?
    AND lease_expires_at > {clock}
    AND ns IN {ns}`),

		// A leader that another program had put there has had a term too. MySQL
		// changes columns one after the other, so the term comes first.
		take: words.Replace(`
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

		count: words.Replace(`
UPDATE {leaders} SET
    term = {greatest}(term + 1, {clock number}),
    term_leader_id = leader_id
WHERE leader_id IS NOT NULL
    AND (term_leader_id IS NULL OR term_leader_id <> leader_id)
    AND ns IN {ns}`),

		add: words.Replace(`
INSERT INTO {leaders} (ns, updated_at)
VALUES {rows of (?, {clock})}
{or leave it}`),

		vacate: words.Replace(`
UPDATE {leaders} SET
    leader_id = NULL,
    lease_expires_at = NULL,
    updated_at = {clock}
WHERE ns = ? AND leader_id = ?`),

		// On SQLite a statement that may write locks the file, also if it finds
		// nothing to change.
		lockFile: words.Replace(`
UPDATE {leaders} SET term = term
WHERE ns = ?`),

		seats:       words.Replace(selectSeats),
		seatsLocked: words.Replace(selectSeats + "\nORDER BY ns\n{for update}"),
		seatsShared: words.Replace(selectSeats + "\n{shared}"),

		tables:  storeTables(words, config),
		columns: storeColumns[dialect],
		turn:    storeTurns[dialect],
		endTurn: "SELECT RELEASE_LOCK(?)",
	}
}

const selectSeats = `
SELECT
    ns,
    leader_id,
    term,
    CASE WHEN term_leader_id = leader_id THEN 1 ELSE 0 END,
    COALESCE({expires}, 0),
    COALESCE({expires}, 0) - {now}
FROM {leaders}
WHERE ns IN {ns}`

// fill renders a statement for n namespaces. Those for one and for a full list,
// which come again and again, are kept.
func (q *storeQueries) fill(query string, n int) string {
	key := filling{query, n}
	if known, ok := q.filled.Load(key); ok {
		return known.(string)
	}
	if before, rest, found := strings.Cut(query, "{rows of "); found {
		row, after, _ := strings.Cut(rest, "}")
		query = before + strings.Repeat(row+", ", n-1) + row + after
	}
	query = q.dialect.render(strings.Replace(query, "{ns}", parameterList(n), 1))
	if n == 1 || n == maxNamespaces {
		q.filled.Store(key, query)
	}
	return query
}

// arguments are namespaces as parameters, after others.
func arguments(namespaces []string, before ...any) []any {
	args := make([]any, 0, len(before)+len(namespaces))
	args = append(args, before...)
	for _, namespace := range namespaces {
		args = append(args, namespace)
	}
	return args
}

// parameterList is a list of n parameters.
func parameterList(n int) string {
	return "(" + strings.Repeat("?, ", n-1) + "?)"
}
