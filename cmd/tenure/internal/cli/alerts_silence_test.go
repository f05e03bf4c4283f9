package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// newAlertPlace returns an installation with an alert that fires.
func newAlertPlace(t *testing.T) place {
	t.Helper()
	place := newPlace(t)
	invoke(t, place.with("migrate", "up", "--feature", "alerts")...).want(t, console.ExitDone)
	i := place.installation(t)
	for _, sql := range []string{
		`INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, notify, changed_by)
			VALUES ('down', 0, 'up == 0', 0, 'critical', '{}', '{}', '{hook}', 'api-1')`,
		`INSERT INTO {alert_states} (rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, incident)
			VALUES ('down', 'f', 'firing', 'critical', '{"role": "billing"}', '{"summary": "it is down"}', 0, now(), now(), 'api-1 crashed.')`,
		`INSERT INTO {alert_history} (rule, fingerprint, severity, labels, summary, fired_at, incident)
			VALUES ('down', 'f', 'critical', '{"role": "billing"}', 'it is down', now(), 'api-1 crashed.')`,
	} {
		pgtest.Exec(t, i.Pool, pgtest.SQL(i.Backend, sql))
	}
	return place
}

// An operator silences an alert, sees it in both lists, and ends the silence.
func TestAlertsSilenceIsShownUntilItEnds(t *testing.T) {
	t.Parallel()
	place := newAlertPlace(t)
	run := func(args ...string) string {
		t.Helper()
		return invoke(t, place.with(append([]string{"alerts"}, args...)...)...).want(t, console.ExitDone).stdout
	}
	var made record.Silence
	invoke(t, place.with("alerts", "silence", "down", "--match", "role=billing", "--for", "2h", "--comment", "a move", "--by", "ann", "-o", "json")...).
		want(t, console.ExitDone).decode(t, &made)
	if made.Number == 0 || made.Alert != "down" || made.Match["role"] != "billing" || made.CreatedBy != "ann" {
		t.Errorf("%+v", made)
	}
	if text := run("silences"); !strings.Contains(text, `down {role="billing"}`) || !strings.Contains(text, "ann") || !strings.Contains(text, "a move") {
		t.Errorf("%s", text)
	}
	if text := run("list"); !strings.Contains(text, "silenced by ann until ") || !strings.Contains(text, "down: incident: api-1 crashed.\n") {
		t.Errorf("%s", text)
	}
	run("unsilence", "1", "--by", "bob")
	if text := run("silences"); strings.Contains(text, "ann") {
		t.Errorf("%s", text)
	}
	if text := run("silences", "--all"); !strings.Contains(text, "bob") {
		t.Errorf("%s", text)
	}
	if text := run("list"); strings.Contains(text, "silenced") {
		t.Errorf("%s", text)
	}
	if text := run("silence", "--match", "role=mail", "--for", "1h"); !strings.Contains(text, `silence 2: all alerts {role="mail"} until `) {
		t.Errorf("%s", text)
	}
}

// An operator acknowledges an alert; the list and the history name the operator.
func TestAlertsAcknowledgeIsShown(t *testing.T) {
	t.Parallel()
	place := newAlertPlace(t)
	invoke(t, place.with("alerts", "acknowledge", "down", "--for", "1h", "--match", "role=mail")...).want(t, console.ExitNotAcquired)
	if text := invoke(t, place.with("alerts", "acknowledge", "down", "--for", "1h", "--by", "ann")...).want(t, console.ExitDone).stdout; text != "acknowledged: 1\n" {
		t.Errorf("%s", text)
	}
	if text := invoke(t, place.with("alerts", "list")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "down: acknowledged by ann until ") {
		t.Errorf("%s", text)
	}
	var past record.AlertHistory
	invoke(t, place.with("alerts", "history", "down", "-o", "json")...).want(t, console.ExitDone).decode(t, &past)
	if len(past.Alerts) != 1 || past.Alerts[0].AcknowledgedBy != "ann" || past.Alerts[0].Incident != "api-1 crashed." || past.Alerts[0].Summary != "it is down" {
		t.Errorf("%+v", past)
	}
	text := invoke(t, place.with("alerts", "history", "--since", "1h")...).want(t, console.ExitDone).stdout
	for _, want := range []string{"fires", "critical", `down {role="billing"}`, "acknowledged: ann", "it is down. api-1 crashed."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Bad input is a usage error and changes nothing.
func TestAlertsRejectBadInput(t *testing.T) {
	t.Parallel()
	place := newAlertPlace(t)
	for want, args := range map[string][]string{
		"name an alert, or labels":           {"silence", "--for", "1h"},
		"--for is required":                  {"silence", "down"},
		"it must be from 1m":                 {"silence", "down", "--for", "1s"},
		"from 1m0s to 8760h0m0s":             {"acknowledge", "down", "--for", "10000h"},
		"a label is written NAME=VALUE":      {"silence", "--match", "role", "--for", "1h"},
		"cannot be the name of a label":      {"silence", "--match", "a-b=c", "--for", "1h"},
		`did you mean "down"?`:               {"silence", "dwn", "--for", "1h"},
		"--by is empty":                      {"silence", "down", "--for", "1h", "--by", ""},
		"has control characters":             {"silence", "down", "--for", "1h", "--comment", "a\x1b[2J"},
		`there is no alert "else"`:           {"acknowledge", "else", "--for", "1h"},
		"name the alert":                     {"acknowledge", "--for", "1h"},
		"is not the number of a silence":     {"unsilence", "down"},
		"no current silence has this number": {"unsilence", "7"},
		"give the number":                    {"unsilence"},
		"give one alert":                     {"history", "a", "b"},
	} {
		if got := invoke(t, place.with(append([]string{"alerts"}, args...)...)...).want(t, console.ExitUsage).stderr; !strings.Contains(got, want) {
			t.Errorf("%q: no %q in %s", args, want, got)
		}
	}
	const want = "there are no alerts: no process has written rules"
	empty := newPlace(t)
	invoke(t, empty.with("migrate", "up")...).want(t, console.ExitDone)
	if got := invoke(t, empty.with("alerts", "silence", "--match", "role=a", "--for", "1h")...).want(t, console.ExitUsage).stderr; !strings.Contains(got, want) {
		t.Errorf("without rules: no %q in %s", want, got)
	}
	if text := invoke(t, place.with("alerts", "silences", "--all")...).want(t, console.ExitDone).stdout; strings.Contains(text, "down") {
		t.Errorf("%s", text)
	}
}

// The messages of an alert are printed with its templates, the cluster and the link, about a
// made-up crash or the latest incident.
func TestAlertsTestPrintsMessages(t *testing.T) {
	t.Parallel()
	text := strings.Replace(alertsFile, `severity = "critical"`, "severity = \"critical\"\ndescription = \"See {{ $labels.role }} on {{ $labels.node_name }}.\"\nrunbook = \"https://r.example.com/{{ $labels.role }}\"", 1)
	path := writeAlerts(t, "[cluster]\nname = \"billing\"\n[http]\nexternal_url = \"https://tenure.example.com\"\n"+
		"[links.alert]\nRunbook = \"https://wiki.example.com/{alert}?in={cluster}\"\n[links.role]\nLogs = \"https://logs.example.com/{role}\"\n"+text, "https://hooks.example/x")
	printed := invoke(t, "alerts", "test", "no_scheduler_leader", "--print", "--config", path).want(t, console.ExitDone).stdout
	for _, want := range []string{
		`TEST CRITICAL billing: 0 "lead" the scheduler for 41 s`, "\nhttps://tenure.example.com/#/alerts\n", "\napi-1 crashed at ",
		" Its role scheduler has no leader.\n", "  See scheduler on api-1.\n", "  runbook: https://r.example.com/scheduler\n",
		"\n  Runbook: https://wiki.example.com/no_scheduler_leader?in=billing\n", "\n  Logs (scheduler): https://logs.example.com/scheduler\n", "\nTEST OVER billing: 0 \"lead\" the scheduler after 41 s\n",
	} {
		if !strings.Contains("\n"+printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	invoke(t, "alerts", "test", "frequent_failovers", "--print", "--config", path).want(t, console.ExitDone) // it has no notifiers
	place := newPlace(t)
	invoke(t, place.with("migrate", "up")...).want(t, console.ExitDone)
	current := place.with("alerts", "test", "no_scheduler_leader", "--print", "--incident", "current", "--config", path)
	if got := invoke(t, current...).want(t, console.ExitNotAcquired).stderr; !strings.Contains(got, "no incident of the last 15 minutes") {
		t.Errorf("%s", got)
	}
	node := place.run(t, "--role", "billing", "--name", "web-7")
	node.await("acquired")
	node.signal(syscall.SIGTERM)
	node.exit()
	printed = invoke(t, current...).want(t, console.ExitDone).stdout
	if !strings.Contains(printed, "web-7 ") || !strings.Contains(printed, "See billing on web-7.") {
		t.Errorf("%s", printed)
	}
}
