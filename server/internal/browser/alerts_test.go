package browser

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// handledAlerts are alerts with everything that the page shows of one.
func handledAlerts(ctx context.Context) ([]dashboard.Alert, error) {
	alerts, err := someAlerts(ctx)
	fired := time.Now().Add(-time.Minute).Truncate(time.Minute)
	return append(alerts,
		dashboard.Alert{Name: "queue_long", State: "firing", Severity: "info", Summary: "The queue is long.", Since: fired, SilencedBy: "bob", SilencedUntil: fired.Add(time.Hour)},
		dashboard.Alert{
			Name: "no_billing_leader", State: "firing", Severity: "critical", Summary: "no leader for billing", Since: fired,
			Labels: map[string]string{"alertname": "no_billing_leader", "severity": "critical", "role": "billing"}, Description: "Candidates run, and none leads.",
			Runbook: "https://r.example.com/billing", Incident: "api-1 crashed at 03:12:07. Its role billing has no leader.",
			AcknowledgedBy: "anna", AcknowledgedUntil: fired.Add(time.Hour),
		},
		dashboard.Alert{Name: "odd", State: "firing", Severity: "error", Summary: "odd", Since: fired, Runbook: "javascript:document.title='broken'"},
	), err
}

// TestAlertsAreShownByUrgencyAndHandled: the worst alert comes first, with its incident, its
// runbook and who handles it; a user that may act silences and acknowledges it.
func TestAlertsAreShownByUrgencyAndHandled(t *testing.T) {
	var (
		mu  sync.Mutex
		got []dashboard.AlertRequest
	)
	w := newWorld(t, dashboard.Config{Authentication: withToken(t), Alerts: handledAlerts, HandleAlert: func(_ context.Context, r dashboard.AlertRequest) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r)
		return nil
	}}, nil)
	p := w.open("#/alerts")
	p.shows("no leader for billing")
	order := value[[]string](p, `[...document.querySelectorAll("tbody tr .name")].filter((e) => e.closest("td") === e.closest("tr").firstElementChild && e.parentElement === e.closest("td")).map((e) => e.innerText)`)
	if want := "no_billing_leader odd frequent_failovers heartbeat_slow queue_long no_scheduler_leader"; strings.Join(order, " ") != want {
		t.Errorf("the alerts are %q; want %s", order, want)
	}
	for _, text := range []string{"Acknowledged by anna until", "Silenced by bob until", "api-1 crashed at 03:12:07.", "Candidates run, and none leads."} {
		p.shows(text)
	}
	if links := value[[]string](p, `[...document.querySelectorAll("tbody .wide a")].map((a) => a.getAttribute("href"))`); len(links) != 1 || links[0] != "https://r.example.com/billing" {
		t.Errorf("the links are %q", links)
	}
	if n := value[int](p, `document.querySelectorAll("tbody button").length`); n != 0 {
		t.Errorf("no user is logged in, and there are %d buttons", n)
	}
	p.logIn()
	p.visit("#/alerts")
	for _, one := range []struct{ button, answer string }{{"Acknowledge", "is acknowledged."}, {"Silence", "is silenced."}} {
		selector := `button[aria-label="` + one.button + `: no_billing_leader"]`
		p.do(one.button, chromedp.WaitVisible(selector), chromedp.Click(selector), chromedp.WaitVisible("dialog"))
		value[bool](p, `(document.querySelector("dialog select").value = "7200", true)`)
		p.do("confirm", chromedp.Click("dialog .primary"))
		p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("`+one.answer+`")`)
		p.do("close", chromedp.Click("dialog .buttons button"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || !got[0].Acknowledge || got[1].Acknowledge {
		t.Fatalf("the requests are %+v", got)
	}
	for _, r := range got {
		if r.Name != "no_billing_leader" || r.For != 2*time.Hour || r.By != "anna" || len(r.Labels) != 1 || r.Labels["role"] != "billing" {
			t.Errorf("the request is %+v", r)
		}
	}
}
