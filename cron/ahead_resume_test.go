package cron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// A schedule that was resumed, changed, added or first declared while the clock was ahead
// begins at that false time. It does not wait for it when the clock is right again.
func TestScheduleOfAnOperatorContinuesAfterClockWasAhead(t *testing.T) {
	const by = 10 * time.Minute
	const yearly = "0 0 0 1 1 *" // no tick of the false time
	for name, tt := range map[string]struct {
		declared string               // the expression of a schedule from before
		before   func(w *world) error // while the clock is right
		ahead    func(w *world) error // while it is ahead
		late     []cron.Schedule      // declared while it is ahead
	}{
		"resumed": {
			declared: "* * * * * *",
			before:   func(w *world) error { return w.management.Pause(w.Context(), "job", "ann") },
			ahead:    func(w *world) error { return w.management.Resume(w.Context(), "job", "ann") },
		},
		"changed": {
			declared: yearly,
			ahead: func(w *world) error {
				return w.management.Change(w.Context(), "job", cron.Override{Expression: "@every 1s"}, "ann")
			},
		},
		"added": {
			declared: yearly,
			ahead: func(w *world) error {
				return w.management.Add(w.Context(), "another", cron.Override{Expression: "@every 1s", Job: "job"}, "ann")
			},
		},
		"declared": {
			declared: yearly,
			late:     []cron.Schedule{{Name: "late", Expression: "* * * * * *"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, clock := newClockWorld(t)
			var ran tally
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
				cron.Schedule{Name: "job", Expression: tt.declared, Job: ran.job})
			start := time.Now()
			w.Await("the schedule", func() bool {
				_, err := w.management.Show(t.Context(), "job")
				return err == nil
			})
			if tt.before != nil {
				w.ok(tt.before(w))
			}
			clock.Set(t, by)
			if tt.ahead != nil {
				w.ok(tt.ahead(w))
			}
			for _, s := range tt.late {
				s.Job = ran.job
				w.run(w.Node("b", tenure.Config{}), cron.Config{Role: tenure.NamedRole("late"), PollInterval: 100 * time.Millisecond}, s)
			}
			w.Await("a tick of the false time", func() bool { return ran.between(start.Add(by/2), time.Now().Add(by)) > 0 })
			clock.Set(t, 0)
			back := time.Now()
			w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })
			ran.wantOnce(t)
		})
	}
}

// A schedule that was resumed at the true time does not follow a clock that is set back
// later: no tick of the past runs, and none is lost.
func TestResumedScheduleDoesNotFollowClockThatIsBehind(t *testing.T) {
	const by = 10 * time.Minute
	w, clock := newClockWorld(t)
	var ran tally
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
		cron.Schedule{Name: "job", Expression: "* * * * * *", CatchUp: cron.CatchUpAll, CatchUpLimit: 100, Job: ran.job})
	start := time.Now()
	w.Await("a tick", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
	w.ok(w.management.Pause(t.Context(), "job", "ann"))
	w.ok(w.management.Resume(t.Context(), "job", "ann"))
	resumed := time.Now()
	w.Await("ticks after it was resumed", func() bool { return ran.between(resumed, time.Now()) >= 2 })
	clock.Set(t, -by)
	set := time.Now()
	w.Await("seconds of the false time", func() bool {
		now := one[time.Time](w, "SELECT clock_timestamp()")
		return now.After(set.Add(3*time.Second-by)) && now.Before(set)
	})
	clock.Set(t, 0)
	back := time.Now()
	w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })
	if n := ran.between(start.Add(-2*by), start.Add(-by/2)); n > 0 {
		t.Errorf("%d ticks of the false time ran; want none", n)
	}
	ran.wantOnce(t)
}
