package cron_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// A run that an operator triggered is interrupted, as by a job that kills its process. While
// the schedule is paused, no next leader repeats it.
func TestPauseKeepsInterruptedRunWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var attempts atomic.Int32
	schedule := cron.Schedule{Name: "reports", Expression: never, Policy: cron.AtLeastOnce, Job: func(ctx context.Context, _ cron.Run) error {
		if attempts.Add(1) == 1 {
			<-ctx.Done()
		}
		return nil
	}}
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule)
	run := w.trigger("reports")
	w.Await("the first attempt", func() bool { return attempts.Load() == 1 })
	w.ok(w.management.Pause(t.Context(), "reports", "ann"))
	first := one[int64](w, `SELECT term FROM {schedules}`)
	w.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE name = 'a'`)
	w.Await("the next term", func() bool { return one[bool](w, `SELECT term > $1 FROM {schedules}`, first) })
	requested := w.trigger("reports")
	w.Await("the end of a run requested later", func() bool { return w.state(requested) == cron.Succeeded })
	if state, n := w.state(run), attempts.Load(); state != cron.Waiting || n != 2 {
		t.Errorf("during the pause the interrupted run is %s after %d attempts of both runs; want it to wait, and 2", state, n)
	}
	w.ok(w.management.Resume(t.Context(), "reports", "ann"))
	w.Await("the repeated run", func() bool { return w.state(run) == cron.Succeeded })
}
