package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A user with only the privileges that "migrate grants" prints can do
// everything that serve does: roll up old rows, evaluate alerts, write samples
// and handle requests of operators.
func TestMigrateGrantsSufficeForServe(t *testing.T) {
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
	holds := func(what, sql string) {
		t.Helper()
		eventually(t, what, func() bool {
			var so bool
			if err := conn.QueryRow(t.Context(), sql).Scan(&so); err != nil {
				t.Fatal(err)
			}
			return so
		})
	}
	invoke(t, "migrate", "up", "--feature", "all", "--dsn", owner).want(t, console.ExitDone)
	run(`
INSERT INTO tenure_history (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
VALUES ('billing', 1, gen_random_uuid(), 'a', 1, now() - interval '3 hours', now() - interval '2 hours', 'resigned');
INSERT INTO tenure_node_history (at, node_id, node_name, incarnation, status, previous)
VALUES (now() - interval '2 hours', gen_random_uuid(), 'a', 1, 'active', '');
INSERT INTO tenure_schedules (name, role, expression, timezone) VALUES ('nightly', 'x', '30 2 * * *', 'UTC');
INSERT INTO tenure_runs (schedule, scheduled_for, state, ticks, claimed_at, started_at, ended_at)
SELECT 'nightly', at, 'succeeded', 1, at, at, at FROM (SELECT now() - interval '2 hours' AS at) old;
INSERT INTO tenure_changes (at, changed_by, kind, name, action) VALUES (now() - interval '2 hours', 'ann', 'role', 'billing', 'long ago');`)

	user := server.Schema(t)
	run("CREATE ROLE " + user + " LOGIN")
	t.Cleanup(func() {
		_, _ = pgtest.Conn(t, owner).Exec(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user, pgx.QueryExecModeSimpleProtocol)
	})
	for _, which := range [][]string{nil, {"--work", "--compaction"}} {
		run(invoke(t, append([]string{"migrate", "grants", "--dsn", owner, "--user", user}, which...)...).want(t, console.ExitDone).stdout)
	}

	folder := t.TempDir()
	const token = "0123456789abcdef0123456789abcdef"
	for name, text := range map[string]string{
		"token":       token + "\n",
		"tenure.toml": "[[alerts]]\nname = \"folds\"\ncondition = 'tenure_leader_is_leader{role=\"log-compactor\"} == 1'\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node := launch(t, "serve", "--dsn", server.DSNFor(user, conn.Config().Database), "--config", filepath.Join(folder, "tenure.toml"),
		"--token-file", filepath.Join(folder, "token"), "--listen", ":0", "--log-level", "info", "--retention", "1h",
		"--alert-interval", "100ms", "--check-interval", "100ms")
	url := served(node)
	for table, days := range map[string]string{"history": "term_days", "node_history": "node_days", "runs": "run_days"} {
		holds("old rows of "+table+" to be folded", "SELECT EXISTS (SELECT FROM tenure_"+days+")")
	}
	holds("old changes to be forgotten", "SELECT NOT EXISTS (SELECT FROM tenure_changes WHERE action = 'long ago')")
	holds("samples", "SELECT EXISTS (SELECT FROM tenure_samples)")
	holds("the alert to fire", "SELECT EXISTS (SELECT FROM tenure_alert_states WHERE state = 'firing')")
	act := func(body string) {
		t.Helper()
		status, answer := fetch(t, http.MethodPost, url+"/api/actions", body, "Content-Type", "application/json", "Authorization", "Bearer "+token)
		if status != http.StatusOK {
			t.Errorf("%s: %d, %s", body, status, answer)
		}
	}
	act(`{"action": "step_down", "name": "log-compactor"}`)
	act(`{"action": "pause_schedule", "name": "nightly"}`)
	act(`{"action": "trigger_schedule", "name": "nightly"}`)
	holds("the actions to be recorded", "SELECT count(*) = 3 FROM tenure_changes WHERE changed_by = 'operator'")
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone || strings.Contains(node.log(), "permission") || strings.Contains(node.log(), "privilege") {
		t.Errorf("exit code %d:\n%s", code, node.log())
	}
}
