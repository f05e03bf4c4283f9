package serve

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/alerts"
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
