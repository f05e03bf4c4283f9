package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

const lateTimeout = 10 * time.Millisecond

// late returns a node, and a function that ignores its context for longer than a step of
// the node's processors may take.
func (w *world) late() (*tenure.Node, func(context.Context)) {
	w.Helper()
	node := w.Node("a", tenure.Config{Lease: time.Second})
	timing := node.Timing()
	return node, func(ctx context.Context) {
		<-ctx.Done()
		<-time.After(timing.Lease - timing.Margin + lateTimeout)
	}
}

// TestLateFailuresCount: a callee that ignores its context, and fails when the time of the
// whole step is over, fails like any other.
func TestLateFailuresCount(t *testing.T) {
	t.Parallel()
	failure := errors.New("the other side does not answer")
	for name, configure := range map[string]func(c *processor.Config, late func(context.Context)){
		"Publish": func(c *processor.Config, late func(context.Context)) {
			c.Publish = func(ctx context.Context, _ *tenure.Term, _ []processor.Event) (int, error) {
				late(ctx)
				return 0, failure
			}
		},
		"Handle": func(c *processor.Config, late func(context.Context)) {
			c.Handle = func(ctx context.Context, _ pgx.Tx, _ []processor.Event) error {
				late(ctx)
				return failure
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "Publish" {
				pgtest.Long(t)
			}
			t.Parallel()
			w := newWorld(t)
			w.append(1)
			node, late := w.late()
			config := processor.Config{
				Name: "counts", HandleTimeout: lateTimeout, PollInterval: 10 * time.Millisecond,
				Retry: retry.FixedInterval{Interval: time.Millisecond}, MaxAttempts: 2,
			}
			configure(&config, late)
			w.group(node, config)
			w.Await("the last attempt", func() bool {
				return w.exists("counts") && w.show("counts").Status == processor.Failed
			})
			if s := w.show("counts"); s.Errors != 2 || s.LastError != failure.Error() {
				t.Errorf("after the last attempt: %+v", s)
			}
		})
	}
}

// TestLateFailureOfResetCounts: the same for a rebuild.
func TestLateFailureOfResetCounts(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	node, late := w.late()
	w.group(node, processor.Config{
		Name: "counts", HandleTimeout: lateTimeout, PollInterval: 10 * time.Millisecond,
		Retry: retry.FixedInterval{Interval: time.Millisecond}, MaxAttempts: 2, Handle: w.fill,
		Reset: func(ctx context.Context, _ pgx.Tx) error {
			late(ctx)
			return errors.New("cannot empty it")
		},
	})
	w.Await("the start", func() bool { return w.exists("counts") })
	w.must(w.management().Rebuild(t.Context(), "counts", "ann"))
	w.Await("the last attempt", func() bool { return w.show("counts").Status == processor.Failed })
}

// TestLateReplayIsRecorded: a dead letter whose publisher takes longer than a step is
// published once, and does not keep later events waiting.
func TestLateReplayIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	node, late := w.late()
	var calls, again atomic.Int64
	w.group(node, processor.Config{
		Name: "counts", HandleTimeout: lateTimeout, PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
		Publish: func(ctx context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			switch {
			case string(batch[0].Data) != "1":
			case calls.Add(1) == 1:
				return 0, processor.ErrPoison
			default:
				again.Add(1)
				late(ctx)
			}
			return len(batch), nil
		},
	})
	w.Await("the dead letter", func() bool { return w.exists("counts") && w.show("counts").DeadLetters == 1 })
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the replay", func() bool { return again.Load() > 0 })
	w.append(2)
	w.Await("the later event", func() bool { return w.show("counts").Processed == 2 })
	if s := w.show("counts"); s.DeadLetters != 0 {
		t.Errorf("after the replay: %+v", s)
	}
}
