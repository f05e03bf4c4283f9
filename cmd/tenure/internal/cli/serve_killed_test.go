package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// When the process that evaluates alerts is killed while one is pending, the
// next one counts from when the condition began to hold, and receivers are
// notified once.
func TestPendingAlertSurvivesKilledAggregator(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	var mu sync.Mutex
	told := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message any
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		told++
	}))
	defer receiver.Close()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"secret": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" + "\n",
		"tenure.toml": `
[[alerts]]
name = "no_billing_leader"
condition = 'sum(tenure_leader_is_leader{role="billing"}) == 0'
for = "6s"
notify = ["hook"]

[alerts.notifications.hook]
type = "webhook"
url = "` + receiver.URL + `"
secret_file = "` + filepath.Join(folder, "secret") + `"
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(name string) *process {
		return launch(t, place.with("serve", "--config", filepath.Join(folder, "tenure.toml"), "--name", name,
			"--listen", ":0", "--log-level", "info", "--alert-interval", "100ms", "--check-interval", "100ms")...)
	}
	alert := func(state string) (seen record.Alert) {
		t.Helper()
		eventually(t, "the alert to be "+state, func() bool {
			var all record.Alerts
			invoke(t, place.with("alerts", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &all)
			if len(all.Alerts) != 1 || all.Alerts[0].State != state {
				return false
			}
			seen = all.Alerts[0]
			return true
		})
		return seen
	}
	first := serve("first")
	pending := alert("pending")
	second := serve("second")
	second.awaitLog("role=metrics-aggregator from=stopped to=follower")
	first.signal(syscall.SIGKILL)
	second.awaitLog("role=metrics-aggregator from=acquiring to=leader")
	firing := alert("firing")
	began, fired := time.Time(pending.Series[0].ActiveAt), time.Time(firing.Series[0].FiredAt)
	if !time.Time(firing.Series[0].ActiveAt).Equal(began) {
		t.Errorf("it has been active since %v, and was since %v", time.Time(firing.Series[0].ActiveAt), began)
	}
	if after := fired.Sub(began); after < 6*time.Second {
		t.Errorf("it fired after %v", after)
	}
	eventually(t, "the notification", func() bool { return alert("firing").PendingNotifications == 0 })
	mu.Lock()
	defer mu.Unlock()
	if told != 1 {
		t.Errorf("operators were notified %d times", told)
	}
}
