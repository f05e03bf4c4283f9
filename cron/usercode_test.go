package cron_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/retry"
)

// A job that ends its goroutine, as a failing assertion of a test library does, has
// failed: its run ends, and later ones start. The same holds for the backoff.
func TestJobThatExitsIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int64
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{
		Name: "pay", Expression: never, Retries: 1,
		Backoff: retry.Func(func(retry.Failure) (time.Duration, bool) { runtime.Goexit(); return 0, true }),
		Job: func(context.Context, cron.Run) error {
			switch calls.Add(1) {
			case 1:
				runtime.Goexit()
			case 2:
				return cron.Retry(errors.New("no paper"))
			}
			return nil
		},
	})
	for _, want := range []struct {
		state cron.State
		text  string
	}{
		{cron.Panicked, "the job panicked: it ended its goroutine with runtime.Goexit"},
		{cron.Failed, "no paper"},
		{cron.Succeeded, ""},
	} {
		if r := w.awaitEnd(w.trigger("pay")); r.State != want.state || r.Error != want.text {
			t.Errorf("the run is %+v; want %s with the error %q", r, want.state, want.text)
		}
	}
}

// flaw is an error whose text needs it, so that it panics if it is a nil pointer.
type flaw struct{ text string }

func (f *flaw) Error() string { return f.text }

// An error of a job can be a nil pointer of the program's type, whose text panics: that ends
// the run and not the program.
func TestPanicOfAnErrorIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{
		Name: "pay", Expression: never, Job: func(context.Context, cron.Run) error {
			var found *flaw
			return found
		},
	})
	if r := w.awaitEnd(w.trigger("pay")); r.State != cron.Panicked || !strings.Contains(r.Error, "nil pointer") {
		t.Errorf("the run is %+v", r)
	}
}
