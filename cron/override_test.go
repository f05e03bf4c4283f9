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
	"github.com/exactly-one/tenure/internal/pgtest"
)

func seconds(d time.Duration) *cron.Seconds { s := cron.Seconds(d); return &s }

// reporting returns a schedule that reports its runs, and those of schedules that
// operators add to run its job.
func reporting(name, expression string) (cron.Schedule, <-chan cron.Run) {
	runs := make(chan cron.Run, 1000)
	return cron.Schedule{Name: name, Expression: expression, Policy: cron.AtLeastOnce, Job: func(_ context.Context, run cron.Run) error {
		runs <- run
		return nil
	}}, runs
}

// awaitRunOf waits for a run of a schedule.
func (w *world) awaitRunOf(runs <-chan cron.Run, schedule string) cron.Run {
	w.Helper()
	limit := time.After(patience)
	for {
		select {
		case run := <-runs:
			if run.Schedule == schedule {
				return run
			}
		case <-limit:
			w.Fatalf("no run of %s", schedule)
		}
	}
}

func (w *world) show(name string) cron.Status {
	w.Helper()
	s, err := w.management.Show(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// The leader runs a schedule as operators have changed it, and so does the next
// leader, without losing a tick, until the change is reset.
func TestOverrideLastsAcrossTerms(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	rare, runs := reporting("rare", never)
	config := cron.Config{PollInterval: time.Hour}
	stop := w.run(w.Node("a", tenure.Config{}), config, rare)
	w.trigger("rare")
	w.awaitRunOf(runs, "rare")

	w.ok(w.management.Change(t.Context(), "rare", cron.Override{Zone: "Europe/Berlin", Timeout: seconds(time.Minute)}, "ann"))
	w.ok(w.management.Change(t.Context(), "rare", cron.Override{Expression: "@every 1s"}, "bob"))
	if s := w.show("rare"); s.Expression != "@every 1s" || s.Zone != "Europe/Berlin" || s.Timeout != time.Minute || s.Policy != cron.AtLeastOnce ||
		s.Next.IsZero() || s.Override == nil || s.Override.Expression != "@every 1s" || s.Override.Zone != "Europe/Berlin" {
		t.Errorf("the changed schedule is %+v", s)
	}
	for run := w.awaitRunOf(runs, "rare"); run.Manual || run.ScheduledFor.Location().String() != "Europe/Berlin"; {
		run = w.awaitRunOf(runs, "rare")
	}

	stop()
	until := w.show("rare").HandledUntil
	w.Await("two ticks without a leader", func() bool {
		return one[bool](w, `SELECT clock_timestamp() > $1::timestamptz + interval '2500 milliseconds'`, until)
	})
	w.run(w.Node("b", tenure.Config{}), config, rare)
	w.Await("later ticks", func() bool { return w.show("rare").HandledUntil.Sub(until) >= 4*time.Second })
	if gap := one[float64](w, `
		SELECT max(extract(epoch FROM gap))::double precision
		FROM (SELECT scheduled_for - lag(scheduled_for) OVER (ORDER BY scheduled_for) AS gap FROM {runs} WHERE NOT manual) g`); gap != 1 {
		t.Errorf("there are %v s between two ticks; want 1", gap)
	}

	w.ok(w.management.Reset(t.Context(), "rare", "cid"))
	w.ok(w.management.Reset(t.Context(), "rare", "cid")) // changes nothing
	w.Await("the program's settings", func() bool {
		s := w.show("rare")
		return s.Expression == never && s.Zone == "UTC" && s.Timeout == 0 && s.Override == nil && s.Loaded
	})
	changes, err := w.management.Changes(t.Context(), "rare", 10)
	w.ok(err)
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.By+" "+c.Action+" "+c.Detail)
	}
	want := []string{`cid reset `, `bob change {"expression":"@every 1s"}`, `ann change {"timezone":"Europe/Berlin","timeout_seconds":60}`}
	if !slices.Equal(lines[:3], want) {
		t.Errorf("the changes are %q; want %q", lines[:3], want)
	}
}

// A schedule that an operator adds runs the job of a program's schedule, and
// can be removed while a leader runs it.
func TestAddedScheduleRunsJobOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rare, runs := reporting("rare", never)
	rare.Timeout = time.Hour
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, rare)
	w.trigger("rare")
	w.awaitRunOf(runs, "rare")

	w.ok(w.management.Add(t.Context(), "extra", cron.Override{Job: "rare", Expression: "@every 1s", Overlap: cron.OverlapQueue}, "ann"))
	w.awaitRunOf(runs, "extra")
	if s := w.show("extra"); !s.Loaded || s.Role != "scheduler" || s.Timeout != time.Hour || s.Overlap != cron.OverlapQueue || s.Policy != cron.AtLeastOnce ||
		s.Override == nil || s.Override.Job != "rare" {
		t.Errorf("the added schedule is %+v", s)
	}
	w.ok(w.management.Pause(t.Context(), "extra", "ann"))
	w.ok(w.management.Change(t.Context(), "extra", cron.Override{Expression: never}, "ann"))
	w.ok(w.management.Resume(t.Context(), "extra", "ann"))
	manual, err := w.management.Trigger(t.Context(), "extra", "ann")
	w.ok(err)
	for run := w.awaitRunOf(runs, "extra"); run.ID != manual; {
		run = w.awaitRunOf(runs, "extra")
	}
	if s := w.show("extra"); s.Override.Job != "rare" || s.Expression != never {
		t.Errorf("the changed schedule is %+v", s)
	}

	w.ok(w.management.Remove(t.Context(), "extra", "ann"))
	w.trigger("rare")
	w.awaitRunOf(runs, "rare") // the leader has read the rows again
	if n := one[int](w, `SELECT count(*) FROM {schedules} WHERE name = 'extra'`); n != 0 {
		t.Error("the leader added the removed schedule again")
	}
}

func TestAdminRejectsInvalidOverrides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := w.management, t.Context()
	rare, _ := reporting("rare", never)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, rare)
	w.trigger("rare")
	w.ok(m.Add(ctx, "extra", cron.Override{Job: "rare", Expression: "@daily"}, "ann"))
	every := cron.Override{Job: "rare", Expression: "@hourly"}
	for reason, err := range map[string]error{
		"name its requester":                        m.Add(ctx, "new", every, ""),
		"has no job":                                m.Add(ctx, "new", cron.Override{Expression: "@hourly"}, "ann"),
		"has no expression":                         m.Add(ctx, "new", cron.Override{Job: "rare"}, "ann"),
		`no schedule "none"`:                        m.Add(ctx, "new", cron.Override{Job: "none", Expression: "@hourly"}, "ann"),
		"whose job it runs, rare":                   m.Add(ctx, "new", cron.Override{Job: "extra", Expression: "@hourly"}, "ann"),
		`name "\n" is invalid`:                      m.Add(ctx, "\n", every, "ann"),
		"never ticks":                               m.Change(ctx, "rare", cron.Override{Expression: "0 0 30 2 *"}, "ann"),
		"overlap of rare":                           m.Change(ctx, "rare", cron.Override{Overlap: "maybe"}, "ann"),
		"is unknown here":                           m.Change(ctx, "rare", cron.Override{Zone: "Mars/Olympus"}, "ann"),
		"jitter of rare":                            m.Change(ctx, "rare", cron.Override{Jitter: seconds(-1)}, "ann"),
		"no change was given for the schedule rare": m.Change(ctx, "rare", cron.Override{}, "ann"),
		"cannot be changed":                         m.Change(ctx, "rare", every, "ann"),
		`no schedule "rear"; known`:                 m.Change(ctx, "rear", cron.Override{Zone: "UTC"}, "ann"),
		`no schedule "raer"; known`:                 m.Reset(ctx, "raer", "ann"),
		"a change must name its reques":             m.Reset(ctx, "rare", ""),
	} {
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v; want an error with %q", err, reason)
		}
		var conflict *cron.ConflictError
		if errors.As(err, &conflict) {
			t.Errorf("%v is a conflict", err)
		}
	}
	for reason, err := range map[string]error{
		"already a schedule extra":         m.Add(ctx, "extra", every, "ann"),
		"already a schedule rare":          m.Add(ctx, "rare", every, "ann"),
		"remove it instead":                m.Reset(ctx, "extra", "ann"),
		"remove it from the program first": m.Remove(ctx, "rare", "ann"),
	} {
		var conflict *cron.ConflictError
		if !errors.As(err, &conflict) || !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v; want a conflict with %q", err, reason)
		}
	}
}
