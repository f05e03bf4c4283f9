package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const alertsFile = `
[[alerts]]
name = "no_scheduler_leader"
condition = "sum(forge_leader_is_leader{role='scheduler'}) == 0"
for = "30s"
severity = "critical"
annotations = { summary = "{{ $value }} \"lead\" the scheduler\n" }
notify = ["slack:#ops"]

[[alerts]]
name = "frequent_failovers"
condition = "rate(forge_leader_failovers_total[5m]) > 5"
severity = "warning"

[alerts.notifications.slack]
url = "URL"
`

// writeAlerts writes a configuration with a receiver of Slack's format.
func writeAlerts(t *testing.T, text, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "URL", url)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Errors are listed with their positions.
func TestConfigCheckListsErrorsOfAlerts(t *testing.T) {
	t.Parallel()
	path := writeAlerts(t, alertsFile, "https://hooks.example/x")
	if got := invoke(t, "config", "check", path).want(t, console.ExitDone).stdout; got != path+": no errors\n" {
		t.Errorf("%s", got)
	}
	broken := writeAlerts(t, strings.ReplaceAll(alertsFile, "== 0", "== "), "https://hooks.example/x")
	got := invoke(t, "config", "check", broken).want(t, console.ExitUsage).stderr
	if !strings.Contains(got, broken+":4:63: alerts[0].condition: unexpected end of input") {
		t.Errorf("%s", got)
	}
}

// A notifier, and an alert's notifiers, receive a beginning and an end. A
// refused notification is reported without the URL.
func TestAlertsTestNotifiesReceivers(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		if r.URL.Path == "/refuse/key" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "no /refuse/key")
		}
	}))
	t.Cleanup(server.Close)
	path := writeAlerts(t, alertsFile, server.URL)
	for name, titles := range map[string][2]string{
		"slack:#ops":          {`"TEST INFO tenure: a message from `, `"TEST OVER tenure: a message from `},
		"no_scheduler_leader": {`"TEST CRITICAL tenure: 0 \"lead\" the scheduler for 41 s`, `"TEST OVER tenure: 0 \"lead\" the scheduler after 41 s`},
	} {
		invoke(t, "alerts", "test", name, "--config", path).want(t, console.ExitDone)
		for _, title := range titles {
			if body := <-bodies; !strings.Contains(body, title) || !strings.Contains(body, `"channel":"#ops"`) {
				t.Errorf("%s", body)
			}
		}
	}
	refused := invoke(t, "alerts", "test", "slack", "--config", writeAlerts(t, alertsFile, server.URL+"/refuse/key")).want(t, console.ExitNotAcquired)
	if !strings.Contains(refused.stdout, "answered 403") || strings.Contains(refused.stdout+refused.stderr, "refuse/key") {
		t.Errorf("%s%s", refused.stdout, refused.stderr)
	}
	for name, want := range map[string]string{"slcak": `did you mean "slack"?`, "frequent_failovers": "no notifying alert", "": "no notifier"} {
		if got := invoke(t, "alerts", "test", name, "--config", path).want(t, console.ExitUsage).stderr; !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
	}
	invoke(t, "alerts", "test", "slack", "--incident", "none", "--config", path).want(t, console.ExitUsage)
	invoke(t, "alerts", "test", "slack").want(t, console.ExitUsage)
	invoke(t, "alerts", "test").want(t, console.ExitUsage)
}

// The command lists the rules in the database with their states and problems.
func TestAlertsListShowsStates(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	var seen record.Alerts
	invoke(t, place.with("alerts", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen) // before there are tables
	if seen.Alerts == nil || len(seen.Alerts) > 0 {
		t.Errorf("%+v", seen)
	}
	invoke(t, place.with("migrate", "up", "--feature", "alerts")...).want(t, console.ExitDone)
	i := place.installation(t)
	backend, pool := i.Backend, i.Pool
	for _, sql := range []string{
		`INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, notify, changed_by, last_error)
			VALUES ('down', 0, 'up == 0', 30000, 'critical', '{}', '{}', '{hook}', 'api-1', ''),
				('bad', 1, 'x', 0, 'info', '{}', '{}', '{}', 'api-1', 'it is bad')`,
		`INSERT INTO {alert_states} (rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at)
			VALUES ('down', 'f', 'firing', 'critical', '{"role": "a\u001bb"}', '{"summary": "it is down"}', 'NaN', now(), now())`,
		`INSERT INTO {alert_notifications} (rule, fingerprint, notifier, address, severity, labels, annotations, value, since, started_at, term, last_error)
			VALUES ('down', 'f', 'hook', 'hook', 'critical', '{}', '{}', 0, now(), now(), 1, 'it answered 500')`,
	} {
		pgtest.Exec(t, pool, pgtest.SQL(backend, sql))
	}
	text := invoke(t, place.with("alerts", "list")...).want(t, console.ExitDone).stdout
	for _, want := range []string{"down   firing", "bad    inactive", "critical", "30s", "bad: it cannot be evaluated: it is bad\n", "with NaN {role=", ": it is down\n", "down: notification failed: it answered 500\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	invoke(t, place.with("alerts", "list", "--state", "firing", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
	if len(seen.Alerts) != 1 || seen.Alerts[0].State != string(alerting.Firing) || seen.Alerts[0].PendingNotifications != 1 ||
		len(seen.Alerts[0].Series) != 1 || seen.Alerts[0].Series[0].Value != "NaN" || seen.Alerts[0].For != 30 {
		t.Errorf("%+v", seen)
	}
	exported := invoke(t, place.with("alerts", "export")...).want(t, console.ExitDone).stdout
	if !strings.Contains(exported, `- alert: "down"`) {
		t.Errorf("%s", exported)
	}
	if err := backend.MigrateDown(t.Context(), "alerts", 0); err != nil {
		t.Fatal(err)
	}
	invoke(t, place.with("alerts", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen) // the feature is not used
	if seen.Alerts == nil || len(seen.Alerts) > 0 {
		t.Errorf("%+v", seen)
	}
	invoke(t, place.with("alerts", "list", "--state", "on")...).want(t, console.ExitUsage)
	invoke(t, "alerts", "list", "--dsn", "sqlite:x").want(t, console.ExitUsage)
}
