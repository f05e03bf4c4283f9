package cron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// A run whose leader died ends although the next leader does not have its schedule. If it
// may be repeated, it waits for a leader that has the schedule.
func TestRunOfScheduleThatNextLeaderLacksEnds(t *testing.T) {
	t.Parallel()
	for policy, want := range map[cron.Policy]cron.State{cron.AtMostOnce: cron.Abandoned, cron.AtLeastOnce: cron.Waiting} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			began, free := make(chan struct{}), make(chan struct{})
			w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{
				Name: "job", Expression: never, Policy: policy, Job: func(context.Context, cron.Run) error {
					close(began)
					<-free // a stopped process receives no cancellation, and does not lead again
					return nil
				},
			})
			t.Cleanup(func() { close(free) })
			run := w.trigger("job")
			<-began
			w.run(w.Node("b", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond}, cron.Schedule{Name: "another", Expression: never, Job: nothing})
			w.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE name = 'a'`)
			w.Await("the end of the run", func() bool { return w.state(run) == want })
		})
	}
}

// A leader that does not have a schedule for long refuses a request to run it.
func TestTriggerOfScheduleThatLeaderLacksIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{Name: "job", Expression: never, Job: nothing})
	w.trigger("job")
	stop()
	w.run(w.Node("b", tenure.Config{}), cron.Config{}, cron.Schedule{Name: "another", Expression: never, Job: nothing})
	w.trigger("another")
	if _, err := w.management.Trigger(t.Context(), "job", "ann"); err != nil {
		t.Errorf("a leader of less than 30s may not have loaded it yet: %v", err)
	}
	// Set by hand: the leader has led for a minute.
	w.Exec(`UPDATE {terms} SET acquired_at = acquired_at - interval '1 minute' WHERE ended_at IS NULL`)
	var conflict *cron.ConflictError
	if _, err := w.management.Trigger(t.Context(), "job", "ann"); !errors.As(err, &conflict) {
		t.Errorf("triggering a schedule that the leader lacks: got %v; want a ConflictError", err)
	}
	if _, err := w.management.Trigger(t.Context(), "another", "ann"); err != nil {
		t.Error(err)
	}
}

// A requested run of a schedule that the leader lacks does not wait forever.
func TestRequestedRunOfScheduleThatLeaderLacksEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{Name: "job", Expression: never, Job: nothing})
	w.trigger("job")
	stop()
	run := w.trigger("job")
	scheduler, err := cron.New(w.Node("b", tenure.Config{}), w.pool, cron.Config{Role: tenure.NamedRole("scheduler"), PollInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	scheduler.SetOrphanWait(100 * time.Millisecond)
	postgrestest.Run(t, scheduler.Run)
	w.Await("the end of the run", func() bool { return w.state(run) == cron.Abandoned })
}
