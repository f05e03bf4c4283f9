package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// If serve may not delete old runs, doctor, status, the metrics and an alert report it,
// with the server's error and for how long the oldest run has been kept for too long.
func TestRetentionThatCannotWorkIsReported(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	owner := server.Database(t) // the roles of serve have separate locks in it
	conn := pgtest.Conn(t, owner)
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v in\n%s", err, sql)
		}
	}
	invoke(t, "migrate", "up", "--feature", "all", "--dsn", owner).want(t, console.ExitDone)
	user := server.Schema(t)
	run("CREATE ROLE " + user + " LOGIN")
	t.Cleanup(func() {
		_, _ = pgtest.Conn(t, owner).Exec(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user, pgx.QueryExecModeSimpleProtocol)
	})
	for _, which := range [][]string{nil, {"--work", "--compaction"}} {
		run(invoke(t, append([]string{"migrate", "grants", "--dsn", owner, "--user", user}, which...)...).want(t, console.ExitDone).stdout)
	}
	run("REVOKE DELETE ON tenure_runs FROM " + user)
	// Set by hand: a run becomes old in 90 days.
	run(`INSERT INTO tenure_runs (schedule, scheduled_for, state, claimed_at, started_at, ended_at)
SELECT 'nightly', at, 'succeeded', at, at, at FROM (SELECT now() - interval '100 days' AS at) old`)
	dsn := server.DSNFor(user, conn.Config().Database)
	if text := invoke(t, "doctor", "--dsn", dsn).want(t, console.ExitDone).stdout; strings.Contains(text, "ok       retention") || strings.Contains(text, "warning  retention") {
		t.Errorf("without a compactor, doctor reports\n%s", text)
	}

	file := filepath.Join(t.TempDir(), "tenure.toml")
	const rule = "[[alerts]]\nname = \"retention\"\ncondition = 'tenure_retention_consecutive_errors > 0 and tenure_retention_late_seconds > 0'\n"
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	node := launch(t, "serve", "--dsn", dsn, "--config", file, "--listen", ":0", "--log-level", "info", "--alert-interval", "100ms", "--check-interval", "100ms")
	url := served(node)
	awaitTexts := func(what string, read func() string, texts ...string) {
		t.Helper()
		text := ""
		defer func() {
			if t.Failed() {
				t.Logf("%s has\n%s", what, text)
			}
		}()
		eventually(t, what+" reports the retention", func() bool {
			text = read()
			for _, part := range texts {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return true
		})
	}
	awaitTexts("doctor", func() string { return invoke(t, "doctor", "--dsn", dsn).stdout },
		"runs: old rows cannot be removed since", "permission denied for table tenure_runs", "should have been removed 9 d 22 h", "migrate grants --compaction")
	awaitTexts("status", func() string { return invoke(t, "status", "--dsn", dsn).stdout },
		"1 kind of old rows cannot be removed: runs (once)", "1 kind of old rows is overdue for removal: runs for 9 d 22 h")
	awaitTexts("/metrics", func() string {
		_, text := fetch(t, http.MethodGet, url+"/metrics", "")
		return text
	}, `tenure_retention_consecutive_errors{rows="runs"} 1`, `tenure_retention_late_seconds{rows="runs"} 8568`, `tenure_retention_consecutive_errors{rows="terms"} 0`)
	eventually(t, "the alert fires", func() bool {
		var fires bool
		if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM tenure_alert_states WHERE state = 'firing')").Scan(&fires); err != nil {
			t.Fatal(err)
		}
		return fires
	})
}

// The alerts have connections that nothing else uses.
func TestAlertsHaveTheirConnections(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	conn := place.server.Conn(t)
	file := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(file, []byte("[[alerts]]\nname = \"led\"\ncondition = 'tenure_leader_is_leader > 2'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	served(launch(t, place.with("serve", "--dashboard=false", "--config", file, "--listen", ":0", "--log-level", "info", "--alert-interval", "100ms", "--check-interval", "100ms")...))
	of := func(application, part string) (n int) {
		t.Helper()
		const sql = `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE '%' || $2 || '%'`
		if err := conn.QueryRow(t.Context(), sql, application, place.schema+`"."`+part).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "the alerts are evaluated on a connection of theirs", func() bool { return of("tenure serve alerts", "tenure_alert_") > 0 })
	if n := of("tenure serve", "tenure_alert_"); n > 0 {
		t.Errorf("%d other connections are used for alerts", n)
	}
}
