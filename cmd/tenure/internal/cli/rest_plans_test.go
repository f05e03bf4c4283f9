package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// grown fills each table that keeps rows with 20,000 of them.
//
// Set by hand: rows of months, for their number. The triggers of 20,000 joins would take
// minutes in one transaction.
const grown = `
SET session_replication_role = replica;
INSERT INTO tenure_terms (role, term, lock_key, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'old-' || n, n, 'k' || n, gen_random_uuid(), 'a', 1, now() - interval '1 day', now() - interval '1 hour', 'resigned' FROM generate_series(1, 20000) n;
INSERT INTO tenure_nodes (id, incarnation, name, hostname, status, lease_ms, pid, backend_start, last_heartbeat, died_at)
SELECT gen_random_uuid(), 1, 'old-' || n, 'h', 'dead', 15000, 1, now() - interval '1 day', now() - interval '1 hour', now() - interval '1 hour' FROM generate_series(1, 20000) n;
INSERT INTO tenure_history (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms, silent_ms)
SELECT 'old-' || n % 1000, n, gen_random_uuid(), 'a', 1, at, at + interval '1 minute', 'crashed', 3, 3
FROM generate_series(1, 20000) n, LATERAL (SELECT now() - interval '20 days' + n * interval '77 seconds' AS at) t;
INSERT INTO tenure_node_history (at, node_id, node_name, incarnation, status, previous)
SELECT now() - interval '20 days' + n * interval '77 seconds', gen_random_uuid(), 'a', 1, 'active', '' FROM generate_series(1, 20000) n;
INSERT INTO tenure_changes (at, changed_by, kind, name, action)
SELECT now() - interval '20 days' + n * interval '77 seconds', 'ann', 'schedule', 'schedule-1', 'pause' FROM generate_series(1, 20000) n;
INSERT INTO tenure_schedules (name, role, expression, timezone) VALUES ('minutely', 'old-1', '* * * * *', 'UTC');
INSERT INTO tenure_runs (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT 'minutely', at, 'succeeded', at, at, at + interval '2 seconds'
FROM generate_series(1, 20000) n, LATERAL (SELECT date_trunc('minute', now()) - n * interval '1 minute' AS at) t;
INSERT INTO tenure_processors (name, kind, role) VALUES ('sums', 'processor', 'old-1');
INSERT INTO tenure_dead_letters (processor, transaction_id, position, error, attempts, term)
SELECT 'sums', '1', n, 'refused', 1, 1 FROM generate_series(1, 20000) n;
`

// Nodes at rest, schedules, a server with alerts and the collection of its metrics read no
// table of records as a whole, by an index or without one. Each evaluation reads the roles
// and nodes a few times.
func TestNothingAtRestReadsAWholeTable(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const (
		rows  = 20000
		rest  = 30 * time.Second // several check intervals, heartbeats, evaluations and looks at schedules
		state = 40               // readings of all roles and nodes in that time: each alert can ask for those without a leader
	)
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	conn := server.Conn(t)
	dsn := []string{"--dsn", server.DSN()}
	invoke(t, append([]string{"migrate", "up", "--feature", "all"}, dsn...)...).want(t, console.ExitDone)
	for sql := range strings.SplitSeq(strings.TrimSpace(grown), ";\n") {
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "VACUUM ANALYZE"); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "[database]", `dsn = "`+server.DSN()+`"`,
		"[[alerts]]", `name = "missed"`, `condition = 'sum(tenure_cron_missed_ticks) < 1'`,
		"[[cron]]", `name = "yearly"`, never, `command = ["true"]`)
	launch(t, append([]string{"run", "--role", "billing", "--name", "a"}, append(dsn, "--", "sleep", "3600")...)...).awaitLog("msg=acquired")
	launch(t, append([]string{"run", "--role", "billing", "--name", "b"}, append(dsn, "--", "sleep", "3600")...)...)
	launch(t, "cron", "run", "--config", file, "--name", "c", "--role", "jobs").awaitLog("msg=acquired")
	page := served(launch(t, "serve", "--config", file, "--listen", ":0", "--log-level", "info"))

	time.Sleep(rest) // what a server reads at its start is over
	before := readsOf(t, conn)
	for range 3 {
		time.Sleep(rest / 3)
		response, err := http.Get(page + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	for table, now := range readsOf(t, conn) {
		read := now
		read.scanned -= before[table].scanned
		read.fetched -= before[table].fetched
		t.Logf("%-30s %6d rows; at rest in %v: %d read without an index, %d by one", table, read.rows, rest, read.scanned, read.fetched)
		most := read.rows
		if table == "tenure_terms" || table == "tenure_nodes" {
			most *= state
		}
		if read.rows >= rows && read.scanned+read.fetched >= most {
			t.Errorf("%s: of %d rows %d were read without an index and %d by one, in %v at rest; want less than %d",
				table, read.rows, read.scanned, read.fetched, rest, most)
		}
	}
}

// reads counts the rows of a table that were read until now.
type reads struct{ rows, scanned, fetched int64 }

// readsOf returns the reads of each table of Tenure's.
func readsOf(t *testing.T, conn *pgx.Conn) map[string]reads {
	t.Helper()
	const query = `SELECT relname, n_live_tup, coalesce(seq_tup_read, 0), coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname LIKE 'tenure\_%'`
	found, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]reads{}
	var name string
	var r reads
	if _, err := pgx.ForEachRow(found, []any{&name, &r.rows, &r.scanned, &r.fetched}, func() error {
		all[name] = r
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
