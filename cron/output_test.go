package cron_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// The output of the last attempt is stored with its run, and lists have its length.
func TestOutputIsStoredWithRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := cron.Schedule{Name: "pay", Expression: never, Retries: 1, Backoff: after(0), Job: func(_ context.Context, run cron.Run) error {
		fmt.Fprintf(run.Output(), "attempt %d\xff\x00\n", run.Attempt)
		if run.Attempt == 1 {
			return cron.Retry(errBusy)
		}
		fmt.Fprint(run.Output(), strings.Repeat("x", 100_000))
		return nil
	}}
	silent := cron.Schedule{Name: "silent", Expression: never, Job: nothing}
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, s, silent)
	listed := w.awaitEnd(w.trigger("pay"))
	if listed.OutputBytes < 65_000 || listed.OutputBytes > 65_536 || listed.Output != "" {
		t.Errorf("in the list, the output has %d bytes, and %d are read", listed.OutputBytes, len(listed.Output))
	}
	r, err := w.management.Run(t.Context(), listed.ID)
	if err != nil || len(r.Output) != r.OutputBytes || !strings.HasPrefix(r.Output, "…x") || !strings.HasSuffix(r.Output, "x") {
		t.Errorf("the output is %.20q with %d bytes, %v", r.Output, len(r.Output), err)
	}
	if r.Output = ""; r != listed {
		t.Errorf("the run is %+v; want %+v", r, listed)
	}

	id := w.trigger("silent")
	w.Await("the run without output", func() bool { return w.states("silent")[cron.Succeeded] == 1 })
	if r, err := w.management.Run(t.Context(), id); err != nil || r.Output != "" || r.OutputBytes != 0 {
		t.Errorf("the run without output is %+v, %v", r, err)
	}
	var unknown *cron.UnknownRunError
	if _, err := w.management.Run(t.Context(), 1<<40); !errors.As(err, &unknown) || !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("an unknown run: %v", err)
	}
}

// A failed attempt's output is stored while its run waits for a retry.
func TestOutputOfFailedAttemptIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, cron.Schedule{
		Name: "pay", Expression: never, Retries: 1, Backoff: after(time.Hour), Job: func(_ context.Context, run cron.Run) error {
			fmt.Fprint(run.Output(), "oh\xff\x00no")
			return cron.Retry(errBusy)
		},
	})
	id := w.trigger("pay")
	w.Await("the output", func() bool {
		r, err := w.management.Run(t.Context(), id)
		w.ok(err)
		return r.State == cron.Waiting && r.Attempt == 2 && r.Output == "oh\uFFFD\uFFFDno"
	})
}

// More runs than are recorded together end together, and all are recorded.
func TestManyEndsAreRecorded(t *testing.T) {
	t.Parallel()
	const many = 250
	w := newWorld(t)
	release, begun := make(chan struct{}), make(chan struct{}, many)
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, cron.Schedule{
		Name: "pay", Expression: never, Overlap: cron.OverlapAllow, Job: func(_ context.Context, run cron.Run) error {
			begun <- struct{}{}
			<-release
			_, err := run.Output().Write([]byte("done"))
			return err
		},
	})
	w.trigger("pay")
	<-begun
	w.Exec(`
		INSERT INTO {runs} (schedule, scheduled_for, state, manual, requested_by)
		SELECT 'pay', clock_timestamp() - n * interval '1 second', 'waiting', true, 'test'
		FROM generate_series(1, $1) AS n`, many-2)
	w.trigger("pay")
	for range many - 1 {
		<-begun
	}
	close(release)
	w.Await("all ends", func() bool {
		return one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'succeeded' AND output = 'done'`) == many
	})
}
