package cron_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// wantChanges checks the record of changes, the latest first.
func (w *world) wantChanges(name string, want ...string) {
	w.Helper()
	changes, err := w.management.Changes(w.Context(), name, 100)
	if err != nil {
		w.Fatal(err)
	}
	got := each(changes, func(c cron.Change) string { return strings.Join([]string{c.By, c.Schedule, c.Action, c.Detail}, " ") })
	if !slices.Equal(got, want) {
		w.Errorf("the changes are %q; want %q", got, want)
	}
	for _, c := range changes {
		if c.At.IsZero() || c.At.After(time.Now().Add(time.Minute)) {
			w.Errorf("a change at %v", c.At)
		}
	}
}

// A schedule and its runs can be removed once its role's leader no longer runs
// it.
func TestRemoveDeletesUnusedSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(time.Hour, cron.Schedule{Name: "old", Expression: "@every 1s"})
	w.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state) SELECT 'old', now() - n * interval '1 s', 'missed' FROM generate_series(1, 5) n`)
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{Name: "present", Expression: never, Job: nothing})
	w.Await("the schedule", func() bool { return one[int](w, `SELECT count(*) FROM {schedules} WHERE term > 0`) == 1 })
	err := w.management.Remove(t.Context(), "present", "ann")
	if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "remove it from the program first") {
		t.Errorf("%v", err)
	}
	if err := w.management.Remove(t.Context(), "old", "ann"); err != nil {
		t.Fatal(err)
	}
	if n := one[int](w, `SELECT count(*) FROM {runs}`); n != 0 {
		t.Errorf("%d runs are left", n)
	}
	stop()
	if err := w.management.Remove(t.Context(), "present", "bob"); err != nil {
		t.Fatal(err)
	}
	if statuses, err := w.management.List(t.Context()); err != nil || len(statuses) != 0 {
		t.Errorf("%+v, %v", statuses, err)
	}
	w.wantChanges("", "bob present remove with runs: 0", "ann old remove with runs: 5")
	w.wantChanges("old", "ann old remove with runs: 5")
}

// Missed counts all ticks that a row represents.
func TestMissedCountsAllTicksOfARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(0, cron.Schedule{Name: "a", Expression: never}, cron.Schedule{Name: "b", Expression: never})
	w.Exec(`
		INSERT INTO {runs} (schedule, scheduled_for, state, ticks)
		VALUES ('a', now(), 'missed', 70), ('a', now() + interval '1 s', 'missed', 1), ('a', now() + interval '2 s', 'skipped', 1)`)
	statuses, err := w.management.List(t.Context())
	if err != nil || statuses[0].Missed != 71 || statuses[1].Missed != 0 {
		t.Errorf("%+v, %v", statuses, err)
	}
}

// An error with any bytes can be recorded; otherwise the scheduler would retry
// forever.
func TestErrorsWithInvalidTextAreRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	texts := map[string]string{
		"null":    "a\x00b",
		"no UTF8": "a\xff\xfeb",
		"long":    strings.Repeat("ü", 3000),
		"odd":     "x" + strings.Repeat("ü", 3000),
	}
	var schedules []cron.Schedule
	for name, text := range texts {
		schedules = append(schedules, cron.Schedule{Name: name, Expression: never, Job: func(context.Context, cron.Run) error { return errors.New(text) }})
	}
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedules...)
	w.Await("the schedules", func() bool { return one[int](w, `SELECT count(*) FROM {schedules}`) == len(texts) })
	for name, text := range texts {
		w.trigger(name)
		w.Await(name, func() bool { return w.states(name)[cron.Failed] == 1 })
		records, err := w.management.History(t.Context(), name, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := records[0].Error
		if got[0] != text[0] || len(got) > 2100 || strings.ContainsAny(got, "\x00") || (len(text) > 2000) != strings.HasSuffix(got, "ü…") {
			t.Errorf("%s: %.30q … %.30q", name, got, got[max(0, len(got)-30):])
		}
	}
}
