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
	for name, change := range map[string]func(w *world) error{
		"resumed": func(w *world) error { return w.management.Resume(w.Context(), "job", "ann") },
		"changed": func(w *world) error {
			if err := w.management.Resume(w.Context(), "job", "ann"); err != nil {
				return err
			}
			return w.management.Change(w.Context(), "job", cron.Override{Expression: "@every 1s"}, "ann")
		},
	} {
		t.Run(name, func(t *testing.T) {
			const by = 10 * time.Minute
			w, clock := newClockWorld(t)
			var ran tally
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
				cron.Schedule{Name: "job", Expression: "* * * * * *", Job: ran.job})
			start := time.Now()
			w.Await("a tick", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
			w.ok(w.management.Pause(t.Context(), "job", "ann"))
			clock.Set(t, by)
			w.ok(change(w))
			w.Await("a tick of the false time", func() bool { return ran.between(start.Add(by/2), time.Now().Add(by)) > 0 })
			clock.Set(t, 0)
			back := time.Now()
			w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })
			ran.wantOnce(t)
		})
	}
}
