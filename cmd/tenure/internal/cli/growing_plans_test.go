package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/processor"
)

// rowsOfMonths adds rows of a range to each table that grows with time or with roles.
//
// Set by hand: rows of months, for their number. The triggers of 100,000 joins would take
// minutes in one transaction.
const rowsOfMonths = `
INSERT INTO tenure_terms (role, term, lock_key, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'old-' || n, n, 'k' || n, gen_random_uuid(), 'a', 1, now() - interval '1 day', now() - interval '1 hour', 'resigned' FROM {rows};
INSERT INTO tenure_nodes (id, incarnation, name, hostname, status, lease_ms, pid, backend_start, last_heartbeat, died_at)
SELECT gen_random_uuid(), 1, 'old-' || n, 'h', 'dead', 15000, 1, now() - interval '1 day', now() - interval '1 hour', now() - interval '1 hour' FROM {rows} WHERE n <= 1000;
INSERT INTO tenure_history (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms, silent_ms)
SELECT 'old-' || n % 1000, n, gen_random_uuid(), 'a', 1, at, at + interval '1 second', 'crashed', 3, 3
FROM {rows}, LATERAL (SELECT now() - n * interval '17 seconds' AS at) t;
INSERT INTO tenure_node_history (at, node_id, node_name, incarnation, status, previous)
SELECT now() - n * interval '17 seconds', gen_random_uuid(), 'a', 1, 'active', '' FROM {rows};
INSERT INTO tenure_changes (at, changed_by, kind, name, action)
SELECT now() - n * interval '17 seconds', 'ann', 'schedule', 'schedule-1', 'pause' FROM {rows};
INSERT INTO tenure_runs (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT 'seconds', at, 'succeeded', at, at, at + interval '2 seconds'
FROM (SELECT coalesce(min(scheduled_for), date_trunc('minute', now())) AS oldest FROM tenure_runs) r, {rows}, LATERAL (SELECT oldest - n * interval '1 minute' AS at) t;
INSERT INTO tenure_dead_letters (processor, transaction_id, position, error, attempts, term, replayed_at)
SELECT 'sums', '1', n, 'refused', 1, 1, now() FROM {rows};
INSERT INTO tenure_events (transaction_id, type) SELECT '1', 'counted' FROM {rows};
INSERT INTO tenure_sample_days (day, metric, digest, labels, kind, samples, total)
SELECT current_date - n / 1000, 'm' || n % 1000, '', '{}', 'gauge', 1, 1 FROM {rows};
INSERT INTO tenure_term_days (day, role, terms, unclean, led_ms, vacant_ms, longest_vacant_ms)
SELECT current_date - 90 - n / 1000, 'old-' || n % 1000, 1, 0, 1, 1, 1 FROM {rows};
INSERT INTO tenure_run_days (day, schedule, succeeded, failed, missed, ran_ms, longest_ms)
SELECT current_date - 90 - n / 1000, 's-' || n % 1000, 1, 0, 0, 1, 1 FROM {rows};
INSERT INTO tenure_alert_notifications (rule, fingerprint, notifier, address, severity, labels, annotations, value, since, started_at, status, term, settled_at)
SELECT 'old', n::text, 'ops', 'ops', 'page', '{}', '{}', 1, now(), now(), 'sent', 1, now() FROM {rows};
INSERT INTO tenure_alert_silences (created_by, until) SELECT 'ann', now() - interval '1 hour' FROM {rows};
INSERT INTO tenure_alert_history (rule, fingerprint, severity, labels, summary, fired_at, ended_at)
SELECT 'old', n::text, 'page', '{}', '', now() - interval '2 hours', now() - interval '1 hour' FROM {rows}`

// steadyTables do not grow with time.
var steadyTables = map[string]string{
	"tenure_alert_rules":    "one row per rule of the file",
	"tenure_alert_states":   "one row per alert that is pending or fires",
	"tenure_installation":   "one row",
	"tenure_migrations":     "one row per version",
	"tenure_node_days":      "one row per day",
	"tenure_nodes":          "live nodes, and dead ones of a day: at most 1,000 here",
	"tenure_processor_lags": "one row per processor",
	"tenure_processors":     "one row per processor",
	"tenure_requests":       "rows of requests that no node has handled yet",
	"tenure_rollup_states":  "one row per kind of old rows",
	"tenure_samples":        "samples of ten minutes",
	"tenure_schedules":      "one row per schedule",
	"tenure_server":         "one row",
	"tenure_spreads":        "one row per set of roles",
}

// growing are the statements that read more of a table as it grows, by how they begin, and
// why. Each one is a limit to lift.
var growing = []struct{ table, sql, why string }{
	{"tenure_terms", "SELECT * FROM ( SELECT role, term, node_id, node_name,", "the page reads the terms that have not ended, which have no index"},
	{"tenure_history", "SELECT * FROM ( SELECT role, term, node_id, node_name,", "the page reads the terms of its time span, of which it shows 20,000"},
	{"tenure_nodes", "UPDATE \"public\".\"tenure_nodes\" n SET last_heartbeat = least(", "times in the future are looked for in all rows of a day, thrice"},
}

// plannedRows are the numbers of rows with which each statement is planned.
var plannedRows = []int{10, 1000, 100000}

// fewRows is how many rows a statement may read of any table: a batch has 1,000.
const fewRows = 3000

// No statement that nodes, schedules, processors, retention, a server with alerts or the
// collection of metrics send at rest or at their start reads more of a table that has grown,
// except for rows that it returns and for what growing lists. The statements are those that the server logs, with those
// inside of functions, and the plans are those that it has executed.
func TestPlansAtRestDoNotGrow(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"autovacuum":                         "off",
		"shared_preload_libraries":           "auto_explain",
		"auto_explain.log_min_duration":      "0",
		"auto_explain.log_analyze":           "on",
		"auto_explain.log_timing":            "off",
		"auto_explain.log_nested_statements": "on",
		"auto_explain.log_format":            "json",
	}})
	conn := server.Conn(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	invoke(t, "migrate", "up", "--feature", "all", "--dsn", server.DSN()).want(t, console.ExitDone)
	exec("SET session_replication_role = replica; SET auto_explain.log_min_duration = -1")
	all, before := map[string]*planned{}, 0
	for i, rows := range plannedRows {
		exec(strings.ReplaceAll(rowsOfMonths, "{rows}", fmt.Sprintf("generate_series(%d, %d) n", before+1, rows)))
		exec("VACUUM ANALYZE")
		checkGrown(t, conn, rows)
		before = rows
		from := sizeOf(t, server.LogPath())
		t.Run(fmt.Sprint(rows, " rows"), func(t *testing.T) { restWithAllPrograms(t, server) })
		readPlans(t, server.LogPath(), from, i, all)
	}
	judgePlans(t, all)
}

// restWithAllPrograms runs everything that Tenure has, for longer than its periods at rest.
func restWithAllPrograms(t *testing.T, server *pgtest.Server) {
	const rest = 35 * time.Second // longer than a call of a watch
	quick := []string{"--dsn", server.DSN(), "--check-interval", "300ms", "--refresh", "2s"}
	start := func(args ...string) *process { t.Helper(); return launch(t, args...) }
	file := writeFile(t,
		"[[alerts]]", `name = "missed"`, `condition = 'sum(tenure_cron_missed_ticks) < 1'`,
		"[[cron]]", `name = "seconds"`, `schedule = "@every 5s"`, `command = ["true"]`)
	for _, name := range []string{"a", "b", "c"} {
		node := start(append([]string{"run", "--role", "billing", "--name", name, "--listen", ":0"}, append(quick, "--", "sleep", "3600")...)...)
		if name == "a" {
			node.awaitLog("msg=acquired")
		}
	}
	start(append([]string{"cron", "run", "--config", file, "--name", "jobs", "--role", "jobs"}, quick...)...).awaitLog("msg=acquired")
	place := place{server, "public"}
	store := place.processors(t, processor.Config{Name: "sums", Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil }})
	page := served(start(append([]string{"serve", "--config", file, "--listen", ":0", "--log-level", "info", "--alert-interval", "1s"}, quick...)...))
	for n := range 5 {
		time.Sleep(rest / 5) // a time at rest, in which nothing is awaited
		place.append(t, store, n)
		for _, path := range []string{"/metrics", "/metrics/cluster"} {
			response, err := http.Get(page + path)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body) // only its statements matter
			response.Body.Close()
		}
	}
}

// checkGrown fails the test if a table has fewer rows and no reason for that.
func checkGrown(t *testing.T, conn *pgx.Conn, rows int) {
	t.Helper()
	for table, reads := range readsOf(t, conn) {
		if steadyTables[table] == "" && reads.rows < int64(rows) {
			t.Fatalf("%s has %d rows, want %d: add them to rowsOfMonths, or a reason to steadyTables", table, reads.rows, rows)
		}
	}
}

// planned is a statement with its plans.
type planned struct {
	sql  string
	at   [3]measuredPlan // as plannedRows
	node map[string]string
}

// measuredPlan is what a statement cost with one number of rows: the most of all executions.
type measuredPlan struct {
	calls    int
	cost     float64
	returned float64
	read     map[string]float64 // rows of each table
}

// explained is a plan as the server explains it after its execution.
type explained struct {
	Type      string      `json:"Node Type"`
	Relation  string      `json:"Relation Name"`
	Cost      float64     `json:"Total Cost"`
	Rows      float64     `json:"Actual Rows"`
	Loops     float64     `json:"Actual Loops"`
	Filtered  float64     `json:"Rows Removed by Filter"`
	Rechecked float64     `json:"Rows Removed by Index Recheck"`
	Plans     []explained `json:"Plans"`
}

// disabled is what the server adds to the cost of a scan of a whole table in a session that
// turns these off, as those of nodes do.
const disabled = 1e10

// visit counts the rows that each scan reads.
func (e explained) visit(read map[string]float64, node map[string]string) {
	if strings.HasSuffix(e.Type, "Scan") && strings.HasPrefix(e.Relation, "tenure_") {
		read[e.Relation] += (e.Rows + e.Filtered + e.Rechecked) * e.Loops
		node[e.Relation] = e.Type
	}
	for _, child := range e.Plans {
		child.visit(read, node)
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	status, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return status.Size()
}

// readPlans reads the plans that a server has logged since an offset.
func readPlans(t *testing.T, path string, from int64, size int, all map[string]*planned) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	add := func() {
		if text.Len() == 0 {
			return
		}
		var found struct {
			SQL  string    `json:"Query Text"`
			Plan explained `json:"Plan"`
		}
		if err := json.Unmarshal([]byte(text.String()), &found); err != nil {
			t.Fatalf("%v in\n%s", err, text.String())
		}
		text.Reset()
		sql := strings.Join(strings.Fields(found.SQL), " ")
		p := all[sql]
		if p == nil {
			p = &planned{sql: sql, node: map[string]string{}}
			all[sql] = p
		}
		p.at[size].add(found.Plan, p.node)
	}
	lines, within := bufio.NewReader(file), false
	for {
		line, err := lines.ReadString('\n')
		rest, more := strings.CutPrefix(line, "\t")
		switch {
		case within && more:
			text.WriteString(rest)
		default:
			add()
			within = strings.HasSuffix(strings.TrimRight(line, "\n"), " plan:")
		}
		if err != nil {
			add()
			return
		}
	}
}

func (m *measuredPlan) add(plan explained, node map[string]string) {
	read := map[string]float64{}
	plan.visit(read, node)
	m.calls++
	m.cost, m.returned = max(m.cost, math.Mod(plan.Cost, disabled)), max(m.returned, plan.Rows)
	if m.read == nil {
		m.read = map[string]float64{}
	}
	for table, rows := range read {
		m.read[table] = max(m.read[table], rows)
	}
}

// total is the number of rows that are read of all tables.
func (m measuredPlan) total() (sum float64) {
	for _, rows := range m.read {
		sum += rows
	}
	return sum
}

// judgePlans prints the statements and fails the test for each that reads more and more.
func judgePlans(t *testing.T, all map[string]*planned) {
	t.Helper()
	last := len(plannedRows) - 1
	var table strings.Builder
	fmt.Fprintf(&table, "%6s  %-29s  %-29s  statement\n", "calls", "cost with 10, 1,000, 100,000", "rows read")
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *planned) int { return int(b.at[last].cost - a.at[last].cost) })
	for _, p := range sorted {
		if len(p.node) == 0 {
			continue // it reads no table of Tenure's
		}
		text := p.sql
		if len(text) > 150 {
			text = text[:150] + " …"
		}
		fmt.Fprintf(&table, "%6d  %9.0f %9.0f %9.0f  %9.0f %9.0f %9.0f  %s\n", p.at[last].calls,
			p.at[0].cost, p.at[1].cost, p.at[last].cost, p.at[0].total(), p.at[1].total(), p.at[last].total(), text)
		for name, rows := range p.at[last].read {
			known := slices.ContainsFunc(growing, func(g struct{ table, sql, why string }) bool {
				return g.table == name && strings.HasPrefix(p.sql, g.sql)
			})
			if rows > fewRows && rows > 2*p.at[last].returned && !known {
				t.Errorf("%s of %s reads %.0f, %.0f, %.0f rows if the table has %v, and returns %.0f:\n%s",
					p.node[name], name, p.at[0].read[name], p.at[1].read[name], rows, plannedRows, p.at[last].returned, p.sql)
			}
		}
	}
	t.Logf("%d statements, with the most of all executions:\n%s", len(all), table.String())
	if len(all) < 50 {
		t.Errorf("the server has logged only %d statements", len(all))
	}
}
