package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// While something that a handler depends on is unavailable, attempts continue,
// and none of them counts against an event.
func TestUnavailableBlamesNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	var calls, taken atomic.Int64
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent", MaxAttempts: 2, Poison: processor.PoisonDeadLetter, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			if calls.Add(1) <= 10 {
				return 0, fmt.Errorf("%w: closed for today", processor.ErrUnavailable)
			}
			taken.Add(int64(len(batch)))
			return len(batch), nil
		},
	})
	w.Await("both events, after 10 outages", func() bool { return taken.Load() == 2 })
}

// A poison event is moved to the dead letters after the first attempt with it
// alone, and no other event is moved.
func TestPoisonEventIsMovedAfterOneAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var attempts atomic.Int64
	var taken atomic.Value
	taken.Store("")
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent", MaxAttempts: 100, Poison: processor.PoisonDeadLetter, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			if slices.ContainsFunc(batch, func(e processor.Event) bool { return string(e.Data) == "2" }) {
				attempts.Add(1)
				return 0, fmt.Errorf("%w: no handler wants it", processor.ErrPoison)
			}
			for _, e := range batch {
				taken.Store(taken.Load().(string) + string(e.Data))
			}
			return len(batch), nil
		},
	})
	w.Await("the events beside the one at fault", func() bool { return taken.Load() == "13" })
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts, want one in its batch and one alone", n)
	}
}

// A handler can request a longer pause than that of Retry.
func TestRetryAfterExtendsThePause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	const asked = 300 * time.Millisecond
	times := make(chan time.Time, 10)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent", MaxAttempts: 1, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			times <- time.Now()
			if len(times) == 1 {
				return 0, &processor.RetryAfterError{Delay: asked, Err: errors.New("busy")}
			}
			return len(batch), nil
		},
	})
	w.Await("the second attempt", func() bool { return len(times) == 2 })
	if first, second := <-times, <-times; second.Sub(first) < asked {
		t.Errorf("tried again after %v, asked for %v", second.Sub(first), asked)
	}
}

// If a publisher takes some events and fails, the failure counts for the
// others.
func TestPublishFailureCountsForEventsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent", Retry: retry.FixedInterval{Interval: time.Hour},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			return len(batch) - 1, errors.New("two are enough")
		},
	})
	w.Await("the failure", func() bool { return w.show("sent").Errors == 1 })
	if s := w.show("sent"); s.Failing != w.place(3) || s.Processed != 2 {
		t.Errorf("%d events are processed and %v fails, want 2 and %v", s.Processed, s.Failing, w.place(3))
	}
}

// A pause that a handler requests needs no cause.
func TestRetryAfterNeedsNoCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent",
		Publish: func(context.Context, *tenure.Term, []processor.Event) (int, error) {
			return 0, &processor.RetryAfterError{Delay: time.Hour}
		},
	})
	w.Await("the failure", func() bool { return w.show("sent").Errors == 1 })
	if s := w.show("sent"); s.LastError != "asked to wait for 1h0m0s" || s.NextAttemptAt.Before(s.LastErrorAt.Add(time.Hour)) || s.Panics != 0 {
		t.Errorf("after the failure: %+v", s)
	}
}
