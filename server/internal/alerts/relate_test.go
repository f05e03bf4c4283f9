package alerts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// TestMessageTellsIncidentAndVacancy: an alert on a vacant role is sent with the sentence of
// what happened to the role, as of when it lost its leader. Its end has no such sentence if
// that is no longer true.
func TestMessageTellsIncidentAndVacancy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	election, err := w.idle("b").Election(tenure.NamedRole("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rule := vacant
	rule.For, rule.Annotations = time.Second, map[string]string{"summary": "no leader for scheduler"}
	rule.Runbook, rule.Description = "https://r.example.com/{{ $value }}", "{{ $value }} lead."
	links := func(a notifiers.Alert) []notifiers.Link {
		return []notifiers.Link{{Name: "Wiki", URL: "https://wiki.example.com/" + a.Name + "/" + a.Role}}
	}
	before := value[time.Time](w, "SELECT clock_timestamp()") // a round is as of its begin, and may read the resignation later
	p := w.start("a", Config{Rules: []Rule{rule}, Cluster: "billing", URL: "https://tenure.example.com", Links: links})
	w.await("a round", p.leads)
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("no_scheduler_leader firing")
	m := w.receiver.heard()[0]
	ended := value[time.Time](w, `SELECT ended_at FROM {terms} WHERE role = 'scheduler'`) // a round may see the leader stop before that
	if !strings.HasPrefix(m.Incident, "b gave up scheduler at ") || !strings.HasSuffix(m.Incident, "It has no leader.") ||
		m.Alerts[0].Since.Before(before) || m.Alerts[0].Since.After(ended) || m.URL != "https://tenure.example.com/#/alerts" ||
		!strings.HasPrefix(m.Title, "CRITICAL billing: no leader for scheduler for ") ||
		m.Alerts[0].Annotations["runbook"] != "https://r.example.com/0" || m.Alerts[0].Annotations["description"] != "0 lead." ||
		len(m.Alerts[0].Links) != 1 || m.Alerts[0].Links[0].URL != "https://wiki.example.com/no_scheduler_leader/scheduler" {
		t.Errorf("the message is %+v; the term ended at %v", m, ended)
	}
	list, err := alerting.List(t.Context(), w.backend, w.pool)
	if err != nil || list[0].Alerts[0].Incident != m.Incident || !list[0].Alerts[0].VacantSince.Equal(ended) {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if term, err = election.Campaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader resolved")
	began := value[time.Time](w, `SELECT acquired_at FROM {terms} WHERE role = 'scheduler'`)
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	over := w.receiver.heard()[1]
	if end := over.Alerts[0].EndedAt; !end.Equal(began) {
		t.Errorf("the alert ended at %v; want the beginning of the next term, %v", end, began)
	}
	if !strings.HasPrefix(over.Title, "OVER billing: no leader for scheduler after ") || strings.Contains(over.Incident, "no leader") {
		t.Errorf("the message is %+v", over)
	}
}

// TestAlertsGetTheirIncident: an alert gets the latest incident of its role or its node,
// none that ended long before, and none of others.
func TestAlertsGetTheirIncident(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 12, 48, 0, time.UTC)
	api, db := uuid.New(), uuid.New()
	term := func(role string, number int64, node uuid.UUID, name string, began, ended time.Duration, reason tenure.EndReason) history.Term {
		one := history.Term{Role: role, Term: number, Node: node, NodeName: name, Began: now.Add(-began), Reason: reason, PrecedingSilence: -1}
		if ended > 0 {
			one.Ended = now.Add(-ended)
		}
		return one
	}
	changes := incident.Changes{Terms: []history.Term{
		term("scheduler", 1, api, "api-1", time.Hour, 41*time.Second, history.EndCrashed),
		term("mail", 1, api, "api-1", time.Hour, 41*time.Second, history.EndCrashed),
		term("old", 1, db, "db-1", time.Hour, 10*time.Minute, history.EndResigned),
		term("old", 2, api, "api-1", 10*time.Minute, 0, ""),
	}}
	const crash = "api-1 crashed at 2026-11-21T03:12:07Z. Its 2 roles have no leader."
	rules := []Rule{
		{Name: "named", Condition: "sum(tenure_leader_is_leader{role='scheduler'}) == 0"},
		{Name: "several", Condition: "sum(tenure_leader_is_leader{role='scheduler'}) == 0 or sum(tenure_leader_is_leader{role='old'}) == 0"},
	}
	for what, test := range map[string]struct {
		alert    alert
		incident string
		vacant   time.Duration // ago
	}{
		"of the role":                {alert{Labels: map[string]string{"role": "scheduler"}}, crash, 41 * time.Second},
		"of the role of the rule":    {alert{Rule: "named"}, crash, 41 * time.Second},
		"of several roles":           {alert{Rule: "several"}, "", 0},
		"of a node by name":          {alert{Labels: map[string]string{"node_name": "api-1"}}, crash, 0},
		"of a node by id":            {alert{Labels: map[string]string{"node": api.String()}}, crash, 0},
		"of an incident long ago":    {alert{Labels: map[string]string{"role": "old"}}, "", 0},
		"of another role":            {alert{Labels: map[string]string{"role": "other"}}, "", 0},
		"of another node":            {alert{Labels: map[string]string{"node_name": "web-1"}}, "", 0},
		"of neither role nor node":   {alert{Labels: map[string]string{"queue": "x"}}, "", 0},
		"of a role and an unseen id": {alert{Labels: map[string]string{"role": "mail", "node": uuid.NewString()}}, crash, 41 * time.Second},
	} {
		test.alert.State, test.alert.FiredAt, test.alert.ActiveAt = Firing, now, now.Add(-30*time.Second)
		c := change{written: []alert{test.alert}, notify: []notification{{alert: test.alert, address: "hook"}}}
		relateTo(changes, now, rules, &c)
		for _, got := range []alert{c.written[0], c.notify[0].alert} {
			vacant := time.Duration(0)
			if !got.VacantSince.IsZero() {
				vacant = now.Sub(got.VacantSince)
			}
			if got.Incident != test.incident || vacant != test.vacant || (got.GroupKey == "") != (test.incident == "") {
				t.Errorf("%s: the incident is %q (%q), and the role is vacant for %v", what, got.Incident, got.GroupKey, vacant)
			}
		}
	}
	older := alert{State: Firing, FiredAt: now.Add(-time.Hour), ActiveAt: now.Add(-time.Hour), Incident: "as it was", Labels: map[string]string{"role": "other"}}
	c := change{written: []alert{older}, notify: []notification{{alert: older, endedAt: now}}}
	relateTo(changes, now, rules, &c)
	if c.written[0].Incident != "as it was" || c.notify[0].alert.Incident != "" {
		t.Errorf("an alert that fires for long has the incident %q, and its end %q", c.written[0].Incident, c.notify[0].alert.Incident)
	}

	// A later incident of the role is not that of the alert when it fired.
	fired := alert{State: Firing, FiredAt: now, ActiveAt: now, Labels: map[string]string{"role": "scheduler"}}
	c = change{written: []alert{fired}}
	relateTo(changes, now, rules, &c)
	changes.Terms = append(changes.Terms, term("scheduler", 2, db, "db-1", 30*time.Second, 5*time.Second, history.EndResigned))
	c = change{notify: []notification{{alert: c.written[0], endedAt: now}}}
	relateTo(changes, now, rules, &c)
	if got := c.notify[0].alert.Incident; !strings.HasPrefix(got, "api-1 crashed") {
		t.Errorf("the end of an alert that a crash caused has the incident %q; want that of the crash", got)
	}
}

// TestAlertOfVacancyEndsWithTheNextTerm: the message of the end counts to the beginning of
// the term that ended the vacancy, unless the alert is about something else.
func TestAlertOfVacancyEndsWithTheNextTerm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 12, 48, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	term := func(number int64, began, ended time.Duration) history.Term {
		one := history.Term{Role: "scheduler", Term: number, Began: ago(began)}
		if ended > 0 {
			one.Ended = ago(ended)
		}
		return one
	}
	first := term(1, time.Hour, 80*time.Second)
	for name, test := range map[string]struct {
		alert alert
		terms []history.Term
		want  time.Duration // ago
	}{
		"a round after the vacancy":                 {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{term(2, 8*time.Second, 0), first}, 8 * time.Second},
		"a round that saw it before its time":       {alert{ActiveAt: ago(81 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, 8*time.Second, 0)}, 8 * time.Second},
		"a round that saw the term before its time": {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, -time.Millisecond, 0)}, -time.Millisecond},
		"a hand-over after it":                      {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, 8*time.Second, 5*time.Second), term(3, 4990*time.Millisecond, 0)}, 8 * time.Second},
		"a second vacancy":                          {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, 30*time.Second, 28*time.Second), term(3, 4*time.Second, 0)}, 4 * time.Second},
		"an alert that lasts longer":                {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, 70*time.Second, 0)}, 0},
		"an alert without a vacancy":                {alert{ActiveAt: ago(75 * time.Second)}, []history.Term{first, term(2, 8*time.Second, 0)}, 0},
		"an alert from before the vacancy":          {alert{ActiveAt: ago(time.Hour), VacantSince: ago(80 * time.Second)}, []history.Term{first, term(2, 8*time.Second, 0)}, 0},
		"terms that are not known":                  {alert{ActiveAt: ago(75 * time.Second), VacantSince: ago(80 * time.Second)}, nil, 0},
	} {
		test.alert.State, test.alert.FiredAt, test.alert.Labels = Firing, ago(60*time.Second), map[string]string{"role": "scheduler"}
		c := change{notify: []notification{{alert: test.alert, endedAt: now}}}
		relateTo(incident.Changes{Terms: test.terms}, now, nil, &c)
		if got := now.Sub(c.notify[0].endedAt); got != test.want {
			t.Errorf("%s: the alert ended %v ago; want %v", name, got, test.want)
		}
	}
}
