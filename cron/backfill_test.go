package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// The ticks of a range that have no run are run in order, each once.
func TestBackfillRunsTicksWithoutRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, runs := reporting("daily", "@daily")
	w.known(0, s)
	from, to := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-11T00:00:00Z")
	w.Exec(`
		INSERT INTO {runs} (schedule, scheduled_for, state, ticks, term, ended_at)
		VALUES
			('daily', '2026-01-02', 'succeeded', 1, 1, clock_timestamp()),
			('daily', '2026-01-04', 'failed', 1, 1, clock_timestamp()),
			('daily', '2026-01-06', 'abandoned', 1, 1, clock_timestamp()),
			('daily', '2026-01-08', 'missed', 5, 0, clock_timestamp()),
			('daily', '2026-01-09', 'skipped', 1, 0, clock_timestamp()),
			('daily', '2026-01-11', 'missed', 1, 0, clock_timestamp())`)
	w.ok(w.management.Pause(t.Context(), "daily", "ann"))
	for _, want := range []cron.Backfilled{{Ticks: 10, Runs: 7}, {Ticks: 10, Runs: 0}} {
		if got, err := w.management.Backfill(t.Context(), "daily", from, to, "ann"); err != nil || got != want {
			t.Fatalf("the backfill is %+v, %v; want %+v", got, err, want)
		}
	}
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, s)
	w.trigger("daily") // while the backfill waits for the end of the pause
	if run := w.awaitRunOf(runs, "daily"); !run.Manual {
		t.Errorf("a paused schedule ran %+v", run)
	}
	w.ok(w.management.Resume(t.Context(), "daily", "ann"))
	for _, day := range []string{"01", "03", "05", "07", "08", "09", "10"} {
		run := w.awaitRunOf(runs, "daily")
		if got := run.ScheduledFor.Format(time.RFC3339); got != "2026-01-"+day+"T00:00:00Z" || run.RequestedBy != "ann" || run.Manual || run.Attempt != 1 {
			t.Errorf("ran %s as %+v; want day %s", got, run, day)
		}
	}
	w.Await("the ends", func() bool { return w.states("daily")[cron.Succeeded] == 9 })
	if states := w.states("daily"); states[cron.Missed] != 1 || states[cron.Failed] != 1 || states[cron.Abandoned] != 1 || states[cron.Skipped] != 0 {
		t.Errorf("the runs are %v", states)
	}
	changes, err := w.management.Changes(t.Context(), "daily", 10)
	w.ok(err)
	var found []string
	for _, c := range changes {
		if c.Action == "backfill" {
			found = append(found, c.By+": "+c.Detail)
		}
	}
	if got := strings.Join(found, "; "); got != "ann: runs: 7, 2026-01-01T00:00:00Z to 2026-01-11T00:00:00Z" {
		t.Errorf("the changes are %q", got)
	}
}

func TestBackfillRejectsInvalidRanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(0, cron.Schedule{Name: "often", Expression: "* * * * *"})
	for reason, test := range map[string]struct{ name, from, to, by string }{
		"in the future":                {"often", "2026-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "ann"},
		"must end after its beginning": {"often", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "ann"},
		"more than 1000 ticks":         {"often", "2026-01-01T00:00:00Z", "2026-01-01T16:41:00Z", "ann"},
		"in 1970 or later":             {"often", "0001-01-01T00:00:00Z", "2026-01-01T16:41:00Z", "ann"},
		"name its requester":           {"often", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ""},
		`no schedule "none"`:           {"none", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "ann"},
	} {
		_, err := w.management.Backfill(t.Context(), test.name, at(t, test.from), at(t, test.to), test.by)
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v; want an error with %q", err, reason)
		}
	}
	got, err := w.management.Backfill(t.Context(), "often", at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T16:40:00Z"), "ann")
	if want := (cron.Backfilled{Ticks: 1000, Runs: 1000}); err != nil || got != want {
		t.Errorf("the largest backfill is %+v, %v", got, err)
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
