package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/link"
	"github.com/exactly-one/tenure/internal/program/notifier"
)

// TestAlertsAreReadWithDefaults: the rules and the notifiers of a file are as it says, with what it
// leaves out.
func TestAlertsAreReadWithDefaults(t *testing.T) {
	t.Parallel()
	file := mustParse(t, `
[[alerts]]
name = "a"
condition = "up == 0"
for = "30s"
severity = "critical"
labels = { team = "x" }
annotations = { summary = "{{ $labels.role }}" }
description = "see {{ $value }}"
runbook = "https://r/{{ $labels.role }}"
notify = ["ops:#a", "hook"]
[[alerts]]
name = "b"
condition = "up"
[alerts.notifications.ops]
type = "slack"
url = "${URL}"
channel = "#b"
[alerts.notifications.hook]
type = "webhook"
url_file = "/u"
per_minute = 5
`, variables("URL", "https://h/s"))
	want := []alerting.Rule{
		{
			Name: "a", Condition: "up == 0", For: 30 * time.Second, Severity: "critical", Labels: map[string]string{"team": "x"},
			Annotations: map[string]string{"summary": "{{ $labels.role }}"},
			Description: "see {{ $value }}", Runbook: "https://r/{{ $labels.role }}", Notify: []string{"ops:#a", "hook"},
		},
		{Name: "b", Condition: "up", Severity: "warning", Labels: map[string]string{}, Annotations: map[string]string{}},
	}
	if got := file.Alerts(); !reflect.DeepEqual(got, want) {
		t.Errorf("the alerts are %+v", got)
	}
	wantNotifiers := []notifier.Config{
		{Name: "hook", Type: "webhook", URLFile: "/u", PerMinute: 5},
		{Name: "ops", Type: "slack", URL: "https://h/s", Channel: "#b"},
	}
	if got := file.Notifiers(); !reflect.DeepEqual(got, wantNotifiers) {
		t.Errorf("the notifiers are %+v", got)
	}
}

// TestAbsentAlertsDifferFromNone: to say nothing of alerts is not to say that there are none.
func TestAbsentAlertsDifferFromNone(t *testing.T) {
	t.Parallel()
	var absent *File
	for text, want := range map[string][]alerting.Rule{
		"alerts = []": {},
		"":            nil,
		"[alerts.notifications.slack]\nurl='https://h/s'\n": nil,
	} {
		if got := mustParse(t, text, none).Alerts(); !reflect.DeepEqual(got, want) {
			t.Errorf("the alerts of %q are %#v", text, got)
		}
	}
	if absent.Alerts() != nil || absent.Notifiers() != nil {
		t.Error("no file has alerts")
	}
}

// TestAlertErrorsNameTheirPlace: errors of alerts are reported at their place.
func TestAlertErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	const slack = "[alerts.notifications.slack]\nurl = 'https://h/s'\n"
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"notifiers", "[[alerts]]\nname = 'a'\ncondition = 'up'\nnotify = ['slcak:#x', 'pagerduty:x', 'none']\n" + slack +
			"[alerts.notifications.pagerduty]\nrouting_key = 'k'", []string{
			`4:1: alerts[0].notify names the notifier "slcak", which is not configured; did you mean "slack"?`,
			`4:1: alerts[0].notify names "pagerduty:x", but a notifier of type pagerduty has no targets: leave out ":x"`,
			`4:1: alerts[0].notify names the notifier "none", which is not configured; add [alerts.notifications.none]`}},
		{"recipients", "[[alerts]]\nname = 'a'\ncondition = 'up'\nnotify = ['email:ops@example.com', 'email:ops']\n" +
			"[alerts.notifications.email]\nsmtp = 'h:25'\nfrom = 'a@b'\nto = ['c@d']", []string{
			`4:1: alerts[0].notify names "email:ops", but "ops" is no address like oncall@example.com`}},
		{"a description twice", "[[alerts]]\nname = 'a'\ncondition = 'up'\ndescription = 'x'\nannotations = { description = 'y' }", []string{
			`4:1: alerts[0].description is also one of its annotations: leave one out`}},
		{"the address of the page", "[http]\nexternal_url = 'https://h/?x'", []string{
			`2:16: http.external_url: it must be a URL like https://tenure.example.com, without a user, a query and a fragment`}},
		{"names of labels", "[[alerts]]\nname = 'a'\ncondition = 'up'\nlabels = { severity = 'x', 'a b' = '' }\nannotations = { 'c-d' = '' }", []string{
			`4:12: alerts[0].labels: the label "severity" is set by the program: leave it out`,
			`4:28: alerts[0].labels: "a b" cannot be the name of a label: use letters, digits and _, and do not begin with a digit`,
			`5:17: alerts[0].annotations: "c-d" cannot be the name of an annotation: use letters, digits and _, and do not begin with a digit`}},
		{"values of notifiers", "[alerts.notifications.webhook]\nurl = 'https://h/s'\nsecret = 'short'\n" +
			"[alerts.notifications.email]\nsmtp = 'h:25'\nfrom = 'x'\nto = ['y']", []string{
			`1:23: alerts.notifications.webhook: its secret must be the base64 of 24 to 64 random bytes; create one with: openssl rand -base64 32`,
			`4:23: alerts.notifications.email: from is "x", which is no address like tenure@example.com`}},
	} {
		_, err := Parse("f", []byte(test.file), none)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "f:")
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the errors are\n%s\nbut should be\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// The links of a file are read in the order of their subjects and names.
func TestLinksAreRead(t *testing.T) {
	t.Parallel()
	file := mustParse(t, "[links.node]\nGrafana = 'https://g/{node}'\n[links.role]\n'Logs of it' = 'https://l/{role}'\nApm = 'https://a'", none)
	want := []link.Template{
		{On: "role", Name: "Apm", Template: "https://a"}, {On: "role", Name: "Logs of it", Template: "https://l/{role}"}, {On: "node", Name: "Grafana", Template: "https://g/{node}"},
	}
	if got := file.Links(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (*File)(nil).Links(); got != nil {
		t.Errorf("without a file: %+v", got)
	}
}
