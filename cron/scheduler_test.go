package cron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

func nothing(context.Context, cron.Run) error { return nil }

// Every tick runs when it is due, and not because the scheduler polls. On a busy
// machine a run can be late, so later ones are queued.
func TestTicksRunWhenDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := make(chan cron.Run, 100)
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, cron.Schedule{
		Name: "each second", Expression: "* * * * * *", Zone: "America/New_York", Overlap: cron.OverlapQueue,
		Job: func(_ context.Context, run cron.Run) error {
			runs <- run
			return nil
		},
	})
	first, second := w.awaitRunOf(runs, "each second"), w.awaitRunOf(runs, "each second")
	if d := second.ScheduledFor.Sub(first.ScheduledFor); d != time.Second {
		t.Errorf("the second tick comes %v after the first", d)
	}
	if zone := first.ScheduledFor.Location().String(); zone != "America/New_York" {
		t.Errorf("the tick is in the zone %s", zone)
	}
	w.Await("the record of the second", func() bool {
		return one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'succeeded' AND id = $1`, second.ID) == 1
	})
	if early := one[int](w, `SELECT count(*) FROM {runs} WHERE started_at < scheduled_for`); early != 0 {
		t.Errorf("%d runs began early", early)
	}
	if term := one[int64](w, `SELECT term FROM {terms} WHERE role = 'scheduler'`); term != first.Term.Number() {
		t.Errorf("the run has term %d, the role %d", first.Term.Number(), term)
	}
}

func TestCatchUpDecidesAboutMissedTicks(t *testing.T) {
	t.Parallel()
	const missed = 10
	for catchUp, want := range map[cron.CatchUp]map[cron.State]int{
		cron.CatchUpNone:   {cron.Missed: missed},
		cron.CatchUpLatest: {cron.Missed: missed - 1, cron.Succeeded: 1},
		cron.CatchUpAll:    {cron.Missed: missed - 4, cron.Succeeded: 4},
	} {
		t.Run(string(catchUp), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var order []time.Time // by the one run at a time
			schedule := cron.Schedule{
				Name: "hourly", Expression: hourly(), CatchUp: catchUp, CatchUpLimit: 4,
				Job: func(_ context.Context, run cron.Run) error {
					order = append(order, run.ScheduledFor)
					return nil
				},
			}
			w.known(missed*time.Hour, schedule)
			stop := w.run(w.Node("a", tenure.Config{}), cron.Config{Grace: time.Nanosecond}, schedule)
			w.Await("all ticks", func() bool {
				states := w.states("hourly")
				return states[cron.Missed]+states[cron.Succeeded] >= missed
			})
			stop()
			got := w.states("hourly")
			for state, n := range want {
				if got[state] != n {
					t.Errorf("%d ticks %s; want %d", got[state], state, n)
				}
			}
			for i := 1; i < len(order); i++ {
				if order[i].Sub(order[i-1]) != time.Hour {
					t.Errorf("ran in the order %v", order)
				}
			}
		})
	}
}

func TestManyMissedTicksShareARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schedule := cron.Schedule{Name: "often", Expression: "@every 1s", Job: nothing}
	w.known(24*time.Hour, schedule)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule)
	w.Await("a record", func() bool { return w.states("often")[cron.Missed] > 0 })
	ticks := one[int](w, `SELECT sum(ticks)::integer FROM {runs} WHERE state = 'missed'`)
	rows := one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'missed'`)
	if least := 24*60*60 - 62; ticks < least || rows != 101 {
		t.Errorf("%d rows for %d ticks; want 101 for at least %d", rows, ticks, least)
	}
}

func TestOverlapDecidesAboutLaterTicks(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[cron.Overlap]map[cron.State]int{
		cron.OverlapSkip:  {cron.Running: 1, cron.Skipped: 2},
		cron.OverlapQueue: {cron.Running: 1, cron.Waiting: 2},
		cron.OverlapAllow: {cron.Running: 3},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ends := make(chan struct{})
			schedule := cron.Schedule{
				Name: "long", Expression: "@every 1s", Overlap: overlap,
				Job: func(context.Context, cron.Run) error { <-ends; return nil },
			}
			w.known(3*time.Second, schedule)
			stop := w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule)
			w.Await("three ticks", func() bool {
				return one[int](w, `SELECT count(*) FROM {runs}`) >= 3
			})
			if err := w.management.Pause(t.Context(), "long", "test"); err != nil {
				t.Fatal(err)
			}
			got := w.states("long")
			for state, n := range want {
				if got[state] < n || state == cron.Running && overlap != cron.OverlapAllow && got[state] != n {
					t.Errorf("%d ticks %s; want %d", got[state], state, n)
				}
			}
			close(ends)
			if err := w.management.Resume(t.Context(), "long", "test"); err != nil {
				t.Fatal(err)
			}
			w.Await("the end of all", func() bool {
				states := w.states("long")
				return states[cron.Waiting] == 0 && states[cron.Succeeded] >= want[cron.Running]+want[cron.Waiting]
			})
			stop()
		})
	}
}

func TestEndsOfRunsAreRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const never = "0 0 29 2 *"
	w.run(w.Node("a", tenure.Config{}), cron.Config{},
		cron.Schedule{Name: "succeeds", Expression: never, Job: nothing},
		cron.Schedule{Name: "fails", Expression: never, Job: func(context.Context, cron.Run) error { return errors.New("no paper") }},
		cron.Schedule{Name: "panics", Expression: never, Job: func(context.Context, cron.Run) error { panic("no ink") }},
		cron.Schedule{Name: "takes long", Expression: never, Timeout: 10 * time.Millisecond, Job: func(ctx context.Context, _ cron.Run) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("the context ended because of %v", context.Cause(ctx))
			}
			return context.Cause(ctx)
		}},
	)
	w.Await("the schedules", func() bool { return one[int](w, `SELECT count(*) FROM {schedules}`) == 4 })
	for name, want := range map[string]struct {
		state cron.State
		text  string
	}{
		"succeeds":   {cron.Succeeded, ""},
		"fails":      {cron.Failed, "no paper"},
		"panics":     {cron.Panicked, "the job panicked: no ink"},
		"takes long": {cron.TimedOut, "the schedule's timeout has passed: context deadline exceeded"},
	} {
		id, err := w.management.Trigger(t.Context(), name, "test")
		if err != nil {
			t.Fatal(err)
		}
		var records []cron.Record
		w.Await(name, func() bool {
			if records, err = w.management.History(t.Context(), name, 10); err != nil {
				t.Fatal(err)
			}
			return !records[0].EndedAt.IsZero()
		})
		got := records[0]
		if len(records) != 1 || got.ID != id || got.State != want.state || got.Error != want.text || !got.Manual || got.RequestedBy != "test" || got.NodeName != "a" {
			t.Errorf("%s: the history is %+v", name, records)
		}
	}
	statuses, err := w.management.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range statuses {
		failures, panics := int64(1), int64(0)
		switch status.Name {
		case "succeeds":
			failures = 0
		case "panics":
			panics = 1
		}
		if status.Failures != failures || status.Panics != panics {
			t.Errorf("%s has %d failures and %d panics", status.Name, status.Failures, status.Panics)
		}
	}
}
