package cron_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// The leader switches to the new schedules: unchanged ones continue, others
// change, start and stop, and no run is lost or doubled.
func TestReplaceKeepsUnchangedSchedules(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), w.pool, cron.Config{Role: tenure.NamedRole("scheduler"), PollInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan string, 100), make(chan struct{})
	schedule := func(name, expression string) cron.Schedule {
		return cron.Schedule{Name: name, Expression: expression, Job: func(_ context.Context, run cron.Run) error {
			begun <- run.Schedule
			if name == "long" {
				<-release
			}
			return nil
		}}
	}
	replace := func(schedules ...cron.Schedule) {
		t.Helper()
		if err := scheduler.Replace(schedules...); err != nil {
			t.Fatal(err)
		}
	}
	replace(schedule("long", never), schedule("stays", never), schedule("goes", never))
	stop := postgrestest.Run(t, scheduler.Run)
	loaded := func(name string) bool {
		statuses, err := w.management.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statuses {
			if s.Name == name {
				return s.Loaded
			}
		}
		return false
	}
	w.Await("the schedules", func() bool { return loaded("long") && loaded("stays") && loaded("goes") })
	until := one[time.Time](w, `SELECT handled_until FROM {schedules} WHERE name = 'stays'`)
	w.trigger("long")
	<-begun

	replace(schedule("stays", never), schedule("new", "@every 1s"))
	if name := <-begun; name != "new" {
		t.Errorf("%s began", name)
	}
	w.Await("the end of two", func() bool { return !loaded("long") && !loaded("goes") })
	if got := one[time.Time](w, `SELECT handled_until FROM {schedules} WHERE name = 'stays'`); !got.Equal(until) || !loaded("stays") {
		t.Errorf("what stays begins anew at %v; it began at %v", got, until)
	}
	if err := w.management.Remove(t.Context(), "goes", "test"); err != nil {
		t.Error(err)
	}

	// One schedule returns while its run is in flight: it knows the run, and so skips a
	// tick.
	replace(schedule("long", "@every 1s"))
	w.Await("a tick that is skipped", func() bool { return w.states("long")[cron.Skipped] > 0 })
	if states := w.states("long"); states[cron.Running] != 1 {
		t.Errorf("%v", states)
	}
	close(release)
	w.Await("the next run", func() bool { return w.states("long")[cron.Succeeded] >= 2 })

	// One schedule is changed in place, and ticks by its new expression.
	replace(schedule("long", "@every 1s"), schedule("changes", never))
	w.Await("the schedule", func() bool { return loaded("changes") })
	replace(schedule("long", "@every 1s"), schedule("changes", "* * * * * *"))
	w.Await("a tick", func() bool { return w.states("changes")[cron.Succeeded] > 0 })
	if got := one[string](w, `SELECT expression FROM {schedules} WHERE name = 'changes'`); got != "* * * * * *" {
		t.Errorf("the row says %q", got)
	}

	for reason, schedules := range map[string][]cron.Schedule{
		"two schedules have the name": {schedule("a", never), schedule("a", never)},
		"never ticks":                 {schedule("a", "0 0 30 2 *")},
	} {
		if err := scheduler.Replace(schedules...); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v; want %q", err, reason)
		}
	}
	replace()
	w.Await("that nothing is left", func() bool { return !loaded("long") })
	stop()
}
