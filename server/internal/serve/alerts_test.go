package serve

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/server/internal/alerts"
)

// If there are many alerts, the page shows some of them, those that fire first.
func TestShownAlertsAreLimited(t *testing.T) {
	t.Parallel()
	storm := alerts.Status{Rule: alerts.Rule{Name: "storm", Severity: "warning"}, State: alerts.Firing}
	for i := range 10_000 {
		state := alerts.Pending
		if i%1000 == 999 {
			state = alerts.Firing
		}
		storm.Alerts = append(storm.Alerts, alerts.Alert{State: state})
	}
	quiet := alerts.Status{Rule: alerts.Rule{Name: "quiet", Condition: "up == 0"}, State: alerts.Inactive}
	shown := shownAlerts([]alerts.Status{storm, quiet})
	if len(shown) != maxShown+2 {
		t.Fatalf("%d are shown", len(shown))
	}
	for i, one := range shown[:maxShown] {
		if fires := one.State == string(alerts.Firing); fires != (i < 10) {
			t.Errorf("alert %d is %s", i, one.State)
		}
	}
	if more := shown[maxShown]; more.Name != "storm" || !strings.HasPrefix(more.Summary, "and 9900 more") {
		t.Errorf("%+v", more)
	}
	if last := shown[maxShown+1]; last.Name != "quiet" || last.Summary != "up == 0" {
		t.Errorf("%+v", last)
	}
	if shownAlerts(nil) == nil {
		t.Error("no alerts are no list")
	}
}

// The page says when a fault began, as messages do, and not when its alert began to fire.
func TestShownAlertsSayWhenTheFaultBegan(t *testing.T) {
	t.Parallel()
	vacant := time.Date(2026, 11, 23, 3, 12, 7, 0, time.UTC)
	active, fired := vacant.Add(10*time.Second), vacant.Add(10*time.Minute)
	for want, one := range map[time.Time]alerts.Alert{
		vacant: {State: alerts.Firing, VacantSince: vacant, ActiveAt: active, FiredAt: fired},
		active: {State: alerts.Firing, ActiveAt: active, FiredAt: fired},
		fired:  {State: alerts.Pending, ActiveAt: fired},
	} {
		rule := alerts.Status{Rule: alerts.Rule{Name: "down"}, State: one.State, Alerts: []alerts.Alert{one}}
		if got := shownAlerts([]alerts.Status{rule})[0].Since; !got.Equal(want) {
			t.Errorf("%+v is shown since %v; want %v", one, got, want)
		}
	}
}

// The worst alerts come first, then those that fire; rules without alerts come last.
func TestShownAlertsAreOrderedByUrgency(t *testing.T) {
	t.Parallel()
	rule := func(name, severity string, states ...alerts.State) alerts.Status {
		s := alerts.Status{Rule: alerts.Rule{Name: name, Severity: severity, Condition: `sum(x{role="mails"}) == 0`}, State: alerts.Inactive}
		for _, state := range states {
			s.Alerts = append(s.Alerts, alerts.Alert{State: state, SilencedBy: "ann", AckedBy: "bob", Incident: "api-1 crashed."})
		}
		return s
	}
	var got []string
	for _, one := range shownAlerts([]alerts.Status{
		rule("calm", "critical"), rule("slow", "warning", alerts.Firing), rule("down", "critical", alerts.Pending, alerts.Firing), rule("odd", "error", alerts.Pending),
		rule("note", "info", alerts.Firing),
	}) {
		got = append(got, one.Name+" "+one.State)
		if one.Role != "mails" {
			t.Errorf("the role is %q", one.Role)
		}
		if one.State != string(alerts.Inactive) && (one.SilencedBy != "ann" || one.AcknowledgedBy != "bob" || one.Incident != "api-1 crashed.") {
			t.Errorf("%+v", one)
		}
	}
	want := []string{"down firing", "down pending", "odd pending", "slow firing", "note firing", "calm inactive"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q; want %q", got, want)
	}
}

// An alert whose condition names a metric that does not exist, or that could not be evaluated, is
// shown with the problem, before inactive ones. A silence is shown while its alert does not fire.
func TestShownAlertsHaveTheirProblems(t *testing.T) {
	t.Parallel()
	rule := func(name, condition, problem string) alerts.Status {
		return alerts.Status{Rule: alerts.Rule{Name: name, Severity: "warning", Condition: condition}, Problem: problem, State: alerts.Inactive, SilencedBy: "ann"}
	}
	shown := shownAlerts([]alerts.Status{rule("calm", "tenure_leader_is_leader == 0", ""), rule("mistyped", "tenure_leader_is_leder == 0", ""), rule("slow", "up == 0", "it took too long")})
	for i, want := range []struct{ name, problem string }{
		{"mistyped", "there is no metric tenure_leader_is_leder; did you mean tenure_leader_is_leader?"}, {"slow", "it took too long"}, {"calm", ""},
	} {
		if got := shown[i]; got.Name != want.name || got.Problem != want.problem || got.SilencedBy != "ann" {
			t.Errorf("alert %d is %+v, want %s with %q, silenced by ann", i, got, want.name, want.problem)
		}
	}
}
