package notifiers

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// noLeader is an alert on a vacant role that fires.
func noLeader(summary string) Alert {
	return Alert{
		ID: uuid.MustParse("11111111-1111-1111-1111-111111111111"), Name: "no_scheduler_leader", Severity: "critical", Value: 0,
		Labels:      map[string]string{"alertname": "no_scheduler_leader", "severity": "critical", "role": "scheduler"},
		Annotations: map[string]string{"summary": summary, "description": "No candidate can lead.", "runbook": "https://r.example.com/scheduler"},
		Since:       time.Date(2026, 11, 21, 3, 12, 7, 0, time.UTC), StartedAt: time.Date(2026, 11, 21, 3, 12, 40, 0, time.UTC),
	}
}

func (a Alert) over(after time.Duration) Alert {
	a.EndedAt = a.Since.Add(after)
	return a
}

// TestTitleFitsLockScreen: a title says how bad it is, where and what, and as much as fits
// of how long and since when, in at most 80 characters.
func TestTitleFitsLockScreen(t *testing.T) {
	t.Parallel()
	vacant := noLeader("no leader for scheduler")
	at := func(d time.Duration) time.Time { return vacant.Since.Add(d) }
	unnamed := vacant
	unnamed.Annotations = nil
	for _, test := range []struct {
		batch Batch
		want  string
	}{
		{Batch{Cluster: "billing", At: at(41 * time.Second), Alerts: []Alert{vacant}}, "CRITICAL billing: no leader for scheduler for 41 s (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "billing", At: at(time.Hour), Alerts: []Alert{vacant.over(4 * time.Minute)}}, "OVER billing: no leader for scheduler after 4 min"},
		{Batch{At: at(3 * time.Hour), Alerts: []Alert{unnamed}}, "CRITICAL tenure: no_scheduler_leader for 3 h 0 min (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "b", At: at(50 * time.Hour), Alerts: []Alert{vacant}}, "CRITICAL b: no leader for scheduler for 2 d 2 h (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "b", At: at(-time.Second), Alerts: []Alert{vacant}}, "CRITICAL b: no leader for scheduler (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "b", At: at(999 * time.Millisecond), Alerts: []Alert{vacant}}, "CRITICAL b: no leader for scheduler (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "b", At: at(time.Second), Alerts: []Alert{vacant}}, "CRITICAL b: no leader for scheduler for 1 s (since 2026-11-21T03:12:07Z)"},
		{Batch{Cluster: "b", At: at(time.Hour), Alerts: []Alert{vacant.over(time.Millisecond)}}, "OVER b: no leader for scheduler"},
		{
			Batch{Cluster: "billing", At: at(41 * time.Second), Alerts: []Alert{noLeader("no node leads the scheduler of all regions")}},
			"CRITICAL billing: no node leads the scheduler of all regions for 41 s",
		},
		{
			Batch{Cluster: "billing", At: at(41 * time.Second), Alerts: []Alert{noLeader(strings.Repeat("ä", 100)), vacant, vacant}},
			"CRITICAL billing: " + strings.Repeat("ä", 41) + "… and 2 more for 41 s",
		},
		{
			Batch{Cluster: strings.Repeat("c", 100) + "\n", At: at(41 * time.Second), Alerts: []Alert{noLeader("one\ntwo \u202e")}},
			"CRITICAL " + strings.Repeat("c", 23) + `…: one two \u202e for 41 s`,
		},
	} {
		got := test.batch.Title()
		if got != test.want || utf8.RuneCountInString(got) > 80 {
			t.Errorf("the title is %q; want %q", got, test.want)
		}
	}
}

// TestTextTellsWorstAndOldestFirst: the lines of a message, with the incident, the runbook
// and the link, in the order of severity and age.
func TestTextTellsWorstAndOldestFirst(t *testing.T) {
	t.Parallel()
	newer, minor := noLeader("no leader for billing"), noLeader("no leader for mail")
	newer.Since, newer.Labels = newer.Since.Add(20*time.Second), nil
	minor.Severity, minor.Since, minor.Annotations = "info", minor.Since.Add(-time.Hour), map[string]string{"summary": "slow", "team": "x\x1b[2J"}
	b := Batch{
		Cluster: "billing", URL: "https://tenure.example.com/", Incident: "api-1 crashed at 2026-11-21T03:12:07Z. Its 2 roles have no leader.",
		At: newer.Since.Add(21 * time.Second), Alerts: []Alert{minor, newer, noLeader("no leader for scheduler")},
	}
	want := `CRITICAL billing: no leader for scheduler and 2 more for 41 s
api-1 crashed at 2026-11-21T03:12:07Z. Its 2 roles have no leader.
https://tenure.example.com/#/alerts

no leader for scheduler for 41 s (since 2026-11-21T03:12:07Z)
  No candidate can lead.
  runbook: https://r.example.com/scheduler
  alert: no_scheduler_leader
  severity: critical
  value: 0
  since: 2026-11-21T03:12:07Z
  role: scheduler

no leader for billing for 21 s (since 2026-11-21T03:12:27Z)
  No candidate can lead.
  runbook: https://r.example.com/scheduler
  alert: no_scheduler_leader
  severity: critical
  value: 0
  since: 2026-11-21T03:12:27Z

slow for 61 min (since 2026-11-21T02:12:07Z)
  alert: no_scheduler_leader
  severity: info
  value: 0
  since: 2026-11-21T02:12:07Z
  role: scheduler
  team: x\u001b[2J
`
	if got := b.Text(); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}
