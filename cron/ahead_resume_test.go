package cron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// A schedule that was resumed or changed while the clock was ahead begins at that false
// time. It does not wait for it when the clock is right again.
func TestScheduleOfAnOperatorContinuesAfterClockWasAhead(t *testing.T) {
	const by = 10 * time.Minute
	for name, tt := range map[string]struct {
		expression string
		before     func(w *world) error // while the clock is right
		change     func(w *world) error // while it is ahead
	}{
		"resumed": {
			expression: "* * * * * *",
			before:     func(w *world) error { return w.management.Pause(w.Context(), "job", "ann") },
			change:     func(w *world) error { return w.management.Resume(w.Context(), "job", "ann") },
		},
		// It has no tick of the false time before the change.
		"changed": {
			expression: "0 0 0 1 1 *",
			before:     func(*world) error { return nil },
			change: func(w *world) error {
				return w.management.Change(w.Context(), "job", cron.Override{Expression: "@every 1s"}, "ann")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, clock := newClockWorld(t)
			var ran tally
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
				cron.Schedule{Name: "job", Expression: tt.expression, Job: ran.job})
			start := time.Now()
			w.Await("the schedule", func() bool {
				_, err := w.management.Show(t.Context(), "job")
				return err == nil
			})
			w.ok(tt.before(w))
			clock.Set(t, by)
			w.ok(tt.change(w))
			w.Await("a tick of the false time", func() bool { return ran.between(start.Add(by/2), time.Now().Add(by)) > 0 })
			clock.Set(t, 0)
			back := time.Now()
			w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })
			ran.wantOnce(t)
		})
	}
}
