package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// volume fills an installation as 90 days of 30 minutely schedules, 50 processors with
// 100,000 open dead letters, and 100,000 terms do.
//
// Set by hand: rows of 90 days, for their number.
const volume = `
INSERT INTO tenure_schedules (name, role, expression, timezone)
SELECT 'schedule-' || s, 'scheduler', '* * * * *', 'UTC' FROM generate_series(1, 30) s;
INSERT INTO tenure_runs (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT 'schedule-' || s, at, CASE WHEN m % 100 = 0 THEN 'missed' WHEN m % 100 = 1 THEN 'failed' ELSE 'succeeded' END, at, at, at + interval '2 seconds'
FROM generate_series(0, 90 * 24 * 60 - 1) m, LATERAL (SELECT date_trunc('minute', now()) - m * interval '1 minute' AS at) t, generate_series(1, 30) s
ORDER BY m DESC;
INSERT INTO tenure_runs (schedule, scheduled_for, state, claimed_at, ended_at)
SELECT 'skips', at, 'skipped', at, at FROM generate_series(1, 90 * 24 * 60) m, LATERAL (SELECT now() - m * interval '1 minute' AS at) t;
INSERT INTO tenure_schedules (name, role, expression, timezone) VALUES ('skips', 'scheduler', '* * * * *', 'UTC');
INSERT INTO tenure_processors (name, kind, role) SELECT 'processor-' || p, 'processor', 'processors' FROM generate_series(1, 50) p;
INSERT INTO tenure_dead_letters (processor, transaction_id, position, error, attempts, term)
SELECT 'processor-' || 1 + n % 50, '1', n, repeat('refused ', 20), 1, 1 FROM generate_series(1, 100000) n;
INSERT INTO tenure_history (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms, silent_ms)
SELECT 'role-' || n % 1000, n, gen_random_uuid(), 'a', 1, at, at + interval '1 minute', 'crashed', 3, 3
FROM generate_series(1, 100000) n, LATERAL (SELECT now() - interval '90 days' + n * interval '77 seconds' AS at) t;
INSERT INTO tenure_node_history (at, node_id, node_name, incarnation, status, previous, outage_since)
SELECT at, gen_random_uuid(), 'a', 1, 'active', '', CASE WHEN n = 100 THEN at - interval '1 minute' END
FROM generate_series(1, 100000) n, LATERAL (SELECT now() - interval '90 days' + n * interval '77 seconds' AS at) t;
INSERT INTO tenure_changes (at, changed_by, kind, name, action)
SELECT now() - interval '90 days' + n * interval '77 seconds', 'ann', 'schedule', 'schedule-1', 'pause' FROM generate_series(1, 100000) n;
`

// A server without viewers that evaluates alerts takes little of a core, its own and the
// database's time together, and none of its reads, nor those of "cron list", gets slower
// with what is kept.
func TestServeCostsLittleBesideMillionsOfRows(t *testing.T) {
	pgtest.Long(t)
	const (
		mostShare = 0.02 // of a core
		mostRead  = 50 * time.Millisecond
	)
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"shared_buffers": "256MB", "max_wal_size": "8GB", "log_min_duration_statement": "0", "autovacuum": "off", "maintenance_work_mem": "256MB",
	}})
	conn := server.Conn(t)
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	invoke(t, "migrate", "up", "--feature", "all", "--dsn", server.DSN()).want(t, console.ExitDone)
	began := time.Now()
	for sql := range strings.SplitSeq(strings.TrimSpace(volume), ";\n") {
		run(sql)
	}
	run("VACUUM ANALYZE")
	t.Logf("the rows were written in %v", time.Since(began).Round(time.Second))
	for range 5 {
		invoke(t, "cron", "list", "--dsn", server.DSN()).want(t, console.ExitDone)
		invoke(t, "processor", "list", "--dsn", server.DSN()).want(t, console.ExitDone)
		invoke(t, "status", "--dsn", server.DSN())
	}

	file := filepath.Join(t.TempDir(), "tenure.toml")
	rules := ""
	for i := range 10 {
		rules += fmt.Sprintf("[[alerts]]\nname = \"rule-%d\"\ncondition = 'sum(tenure_cron_missed_ticks) < %d'\n", i, i)
	}
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	node := launch(t, "serve", "--dsn", server.DSN(), "--config", file, "--listen", ":0", "--log-level", "info")
	served(node)
	// The dashboard rests half a minute after its start, and the roles are taken by then.
	time.Sleep(45 * time.Second)
	pids := func() (all []int) {
		rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowTo[int])
		}
		if err != nil {
			t.Fatal(err)
		}
		return append(all, node.command.Process.Pid)
	}
	before := map[int]time.Duration{}
	for _, pid := range pids() {
		before[pid] = cpuOf(t, pid)
	}
	began = time.Now()
	time.Sleep(time.Minute)
	var used, own time.Duration
	for _, pid := range pids() {
		took := cpuOf(t, pid) - before[pid]
		used += took
		if pid == node.command.Process.Pid {
			own = took
		}
	}
	share := float64(used) / float64(time.Since(began))
	t.Logf("%.2f %% of a core: %v of the server's time, %v of the process's, in a minute", 100*share, used-own, own)
	if share > mostShare {
		t.Errorf("a serve without viewers takes %.2f %% of a core; want at most %.0f %%", 100*share, 100*mostShare)
	}
	log, err := os.ReadFile(server.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	durations := durationsOf(string(log))
	if len(durations) < 10 {
		t.Errorf("the server's log has %d different reads of the program; want more", len(durations))
	}
	for statement, times := range durations {
		slices.Sort(times)
		least, median, most := times[0], times[len(times)/2], times[len(times)-1]
		if least > mostRead { // other programs of the machine can only delay a read
			t.Errorf("%d times, in %v to %v; want at most %v:\n%s", len(times), least, most, mostRead, statement)
		} else if most > mostRead/5 {
			t.Logf("%d times, in %v, %v and at most %v: %.150s", len(times), least, median, most, strings.Join(strings.Fields(statement), " "))
		}
	}
}

// cpuOf returns the time that a process has used.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("%s", stat)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// durationLine is a line of a server's log with the time of a read of the program.
var durationLine = regexp.MustCompile(`(?s)^[^\[]*\[\d+\] tenure[^:]*: LOG:  duration: ([0-9.]+) ms  (?:execute|statement)[^:]*: (\s*(?:SELECT|WITH)\s.*)$`)

// durationsOf returns how long the reads of the program took, by their text.
func durationsOf(log string) map[string][]time.Duration {
	found := map[string][]time.Duration{}
	for _, entry := range regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d `).Split(log, -1) {
		if match := durationLine.FindStringSubmatch(entry); len(match) > 0 {
			ms, _ := strconv.ParseFloat(match[1], 64) // by the expression
			found[match[2]] = append(found[match[2]], time.Duration(ms*float64(time.Millisecond)))
		}
	}
	return found
}
