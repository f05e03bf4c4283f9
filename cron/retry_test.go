package cron_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/retry"
)

var errBusy = errors.New("the partner is busy")

// after is a backoff with one delay.
func after(delay time.Duration) retry.Strategy {
	return retry.Func(func(retry.Failure) (time.Duration, bool) { return delay, true })
}

// failing returns a schedule whose job reports its runs and returns an error until
// an attempt.
func failing(until int, err error) (cron.Schedule, <-chan cron.Run) {
	s, runs := reporting("pay", never)
	s.Backoff, s.Policy = after(0), cron.AtMostOnce
	report := s.Job
	s.Job = func(ctx context.Context, run cron.Run) error {
		_ = report(ctx, run)
		if run.Attempt < until {
			return err
		}
		return nil
	}
	return s, runs
}

// awaitEnd waits for the end of a run.
func (w *world) awaitEnd(id int64) (r cron.Record) {
	w.Helper()
	w.Await(fmt.Sprintf("the end of run %d", id), func() bool {
		for _, one := range w.history("pay") {
			if one.ID == id {
				r = one
			}
		}
		return !r.EndedAt.IsZero()
	})
	return r
}

func (w *world) history(schedule string) []cron.Record {
	w.Helper()
	records, err := w.management.History(w.Context(), schedule, 100)
	w.ok(err)
	return records
}

// One run is tried again until its job succeeds, and its record counts the attempts.
func TestRetryRunsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, runs := failing(4, fmt.Errorf("paying: %w", cron.Retry(errBusy)))
	s.Retries = 3
	var failures []retry.Failure // by one attempt at a time
	s.Backoff = retry.Func(func(f retry.Failure) (time.Duration, bool) {
		failures = append(failures, f)
		return time.Millisecond, true
	})
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, s)
	id := w.trigger("pay")
	for attempt := 1; attempt <= 4; attempt++ {
		if run := w.awaitRunOf(runs, "pay"); run.ID != id || run.Attempt != attempt || !run.Manual {
			t.Errorf("attempt %d is run %d, attempt %d; want run %d", attempt, run.ID, run.Attempt, id)
		}
	}
	r := w.awaitEnd(id)
	stop()
	if r.State != cron.Succeeded || r.Attempt != 4 || r.Error != "" || !r.RetryAt.IsZero() {
		t.Errorf("the run is %+v", r)
	}
	if s := w.show("pay"); s.Failures != 0 || s.Retries != 3 || len(w.history("pay")) != 1 {
		t.Errorf("the schedule is %+v", s)
	}
	for i, f := range failures {
		if f.Attempt != i+1 || !errors.Is(f.LastError, errBusy) || f.Elapsed <= 0 {
			t.Errorf("failure %d is %+v", i, f)
		}
	}
}

// A run fails if its error does not ask for a retry, if none is left, or if the
// backoff gives up or panics.
func TestRetryEndsWithFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		retries int
		backoff retry.Strategy
		attempt int
	}{
		"the error does not ask": {errBusy, 5, after(0), 1},
		"no retries":             {cron.Retry(errBusy), 0, after(0), 1},
		"none left":              {cron.Retry(errBusy), 2, after(0), 3},
		"the backoff gives up": {cron.Retry(errBusy), 5, retry.Func(func(f retry.Failure) (time.Duration, bool) {
			return 0, f.Attempt < 2
		}), 2},
		"the backoff panics": {cron.Retry(errBusy), 5, retry.Func(func(retry.Failure) (time.Duration, bool) { panic("oh no") }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, _ := failing(10, test.err)
			s.Retries, s.Backoff = test.retries, test.backoff
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, s)
			r := w.awaitEnd(w.trigger("pay"))
			if r.State != cron.Failed || r.Attempt != test.attempt || r.Error != errBusy.Error() {
				t.Errorf("the run is %+v; want %d attempts", r, test.attempt)
			}
			if n := w.show("pay").Failures; n != 1 {
				t.Errorf("%d failures", n)
			}
		})
	}
}

// A run that waits for its retry delays neither the end of the term nor, under
// AtMostOnce, its retry by the next leader.
func TestRetryOutlivesTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, runs := failing(2, cron.Retry(errBusy))
	s.Retries, s.Backoff = 1, after(time.Hour)
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour}, s)
	id := w.trigger("pay")
	first := w.awaitRunOf(runs, "pay")
	var r cron.Record
	w.Await("the record of the first attempt", func() bool { r = w.history("pay")[0]; return r.State == cron.Waiting && r.Attempt == 2 })
	if left := time.Until(r.RetryAt); r.Error != errBusy.Error() || left < 50*time.Minute || left > time.Hour || !r.EndedAt.IsZero() {
		t.Errorf("the run that waits is %+v", r)
	}
	stop() // which fails the test if it takes long

	w.Exec(`UPDATE {runs} SET retry_at = clock_timestamp() + interval '1 second' WHERE id = $1`, id)
	w.run(w.Node("b", tenure.Config{}), cron.Config{PollInterval: time.Hour}, s)
	second := w.awaitRunOf(runs, "pay")
	if second.ID != id || second.Attempt != 2 || second.Term.Number() <= first.Term.Number() {
		t.Errorf("the retry is %+v after %+v", second, first)
	}
	if r := w.awaitEnd(id); r.State != cron.Succeeded || r.NodeName != "b" || r.StartedAt.Before(r.ScheduledFor.Add(time.Second)) {
		t.Errorf("the run is %+v", r)
	}
}

// Later runs wait for a run that waits for its retry, unless overlaps are allowed.
func TestRetryDelaysLaterRuns(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[cron.Overlap]map[cron.State]int{
		cron.OverlapSkip:  {cron.Waiting: 2},
		cron.OverlapQueue: {cron.Waiting: 2},
		cron.OverlapAllow: {cron.Waiting: 1, cron.Succeeded: 1},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, runs := reporting("pay", never)
			s.Overlap, s.Retries, s.Backoff = overlap, 1, after(time.Hour)
			report, failed := s.Job, false // before the second run begins
			s.Job = func(ctx context.Context, run cron.Run) error {
				_ = report(ctx, run)
				if !failed {
					failed = true
					return cron.Retry(errBusy)
				}
				return nil
			}
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond}, s)
			w.trigger("pay")
			w.awaitRunOf(runs, "pay")
			w.Await("the retry", func() bool { return w.states("pay")[cron.Waiting] == 1 })
			w.trigger("pay")
			w.Await("the second run", func() bool {
				states := w.states("pay")
				for state, n := range want {
					if states[state] != n {
						return false
					}
				}
				return true
			})
			if overlap == cron.OverlapAllow {
				return
			}
			// Set by hand: the pause is an hour, so that nothing runs before.
			w.Exec(`UPDATE {runs} SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL`)
			first, second := w.awaitRunOf(runs, "pay"), w.awaitRunOf(runs, "pay")
			if first.Attempt != 2 || second.Attempt != 1 {
				t.Errorf("ran attempt %d, then attempt %d", first.Attempt, second.Attempt)
			}
		})
	}
}

// A tick is skipped while a run waits for its retry.
func TestTicksDuringRetryAreSkipped(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	s, runs := failing(2, cron.Retry(errBusy))
	s.Expression, s.Retries, s.Backoff = "* * * * * *", 1, after(time.Hour)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, s)
	w.awaitRunOf(runs, "pay")
	w.Await("skipped ticks", func() bool { return w.states("pay")[cron.Skipped] >= 2 })
	if states := w.states("pay"); states[cron.Waiting] != 1 || states[cron.Running]+states[cron.Succeeded] > 0 {
		t.Errorf("the runs are %v", states)
	}
}
