package processor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// journal is a log that a test reads while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

// nodeLogging opens a node whose log the test reads.
func (w *world) nodeLogging(to *journal) *tenure.Node {
	w.Helper()
	node, err := tenure.Open(w.Context(), w.backend, tenure.Config{Name: "a", Logger: slog.New(slog.NewTextHandler(to, nil))})
	w.must(err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			w.Error(err)
		}
	})
	return node
}

// A handler that still runs after its context has ended is reported, and what
// it did is not committed.
func TestHandlerIgnoringItsContextIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var log journal
	var calls atomic.Int64
	release := make(chan struct{})
	w.group(w.nodeLogging(&log), processor.Config{
		Name: "counts", HandleTimeout: 100 * time.Millisecond, PollInterval: 10 * time.Millisecond,
		Retry: retry.FixedInterval{Interval: time.Millisecond}, MaxAttempts: 1000,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if calls.Add(1) == 1 {
				<-release
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("the report", func() bool { return log.has("still runs after its context has ended") })
	w.append(2)
	w.Await("the lag", func() bool { return w.lag("counts").Behind == 2 })
	if s := w.show("counts"); !strings.Contains(s.LastError, "ignored the end of its context") || !s.Busy {
		t.Errorf("while the handler continues: %+v", s)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls while the first continues", n)
	}
	close(release)
	w.Await("the events", func() bool { return len(w.numbers()) > 1 })
	if got := w.numbers(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("handled %v", got)
	}
}

// A panic is caught, logged with its stack and counted, and the event is
// retried.
func TestPanicIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	var log journal
	var calls atomic.Int64
	w.group(w.nodeLogging(&log), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, Retry: retry.FixedInterval{Interval: time.Millisecond},
		MaxAttempts: 3, Poison: processor.PoisonDeadLetter,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if err := w.fill(ctx, tx, batch); err != nil {
				return err
			}
			if string(batch[0].Data) == "1" {
				calls.Add(1)
				panic("one is none")
			}
			return nil
		},
	})
	w.Await("the other", func() bool { return slices.Equal(w.numbers(), []int{2}) })
	s := w.show("counts")
	if s.Panics != calls.Load() || s.Panics != 3 || s.DeadLetters != 1 || s.Skipped != 0 {
		t.Errorf("after %d panics: %+v", calls.Load(), s)
	}
	if letters := w.letters("counts"); len(letters) != 1 || !strings.Contains(letters[0].Error, "one is none") {
		t.Errorf("the dead letters are %+v", letters)
	}
	if !log.has("one is none") || !log.has("call_test.go") {
		t.Error("the log does not show the panic with its stack")
	}
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the replay", func() bool { return w.show("counts").Panics == 4 && w.letters("counts")[0].Attempts == 4 })
}

// Reset can panic too during a rebuild.
func TestPanicOfResetIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var calls atomic.Int64
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Reset: func(context.Context, pgx.Tx) error {
			if calls.Add(1) == 1 {
				panic(errors.New("empty already"))
			}
			return nil
		},
	})
	w.Await("the event", func() bool { return len(w.numbers()) == 1 })
	w.must(w.management().Rebuild(t.Context(), "counts", "ann"))
	w.Await("the rebuild", func() bool { return slices.Equal(w.numbers(), []int{1, 1}) })
	if s := w.show("counts"); s.Panics != 1 || !strings.Contains(s.LastError, "empty already") {
		t.Errorf("after the panic: %+v", s)
	}
}

// A handler that ends its goroutine, as a failing assertion of a test library does, has
// failed: its processor does not end unnoticed while another one keeps the term.
func TestHandlerThatExitsIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	group, err := processor.NewGroup(w.Node("a", tenure.Config{}), tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	w.must(err)
	var calls, delays atomic.Int64
	w.must(group.Add(processor.Config{
		Name: "counts", Log: w.store.Log(), PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Retry: retry.Func(func(retry.Failure) (time.Duration, bool) {
			if delays.Add(1) == 1 {
				runtime.Goexit()
			}
			return time.Millisecond, true
		}),
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if calls.Add(1) <= 2 {
				runtime.Goexit()
			}
			return w.fill(ctx, tx, batch)
		},
	}))
	w.must(group.Add(processor.Config{
		Name: "other", Log: w.store.Log(), Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil },
	}))
	postgrestest.Run(w, group.Run)
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
	if s := w.show("counts"); s.Panics != 2 || !strings.Contains(s.LastError, "runtime.Goexit") {
		t.Errorf("after the ends of two goroutines: %+v", s)
	}
}

// flaw is an error whose text panics.
type flaw struct{}

func (f *flaw) Error() string { panic("the error of a handler panics") }

// An error of a handler can be a nil pointer of the program's type, whose text panics: that
// is a failed attempt and does not end the program.
func TestPanicOfAnErrorIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var calls atomic.Int64
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if calls.Add(1) == 1 {
				var found *flaw
				return found
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
	if s := w.show("counts"); s.Panics != 1 || !strings.Contains(s.LastError, "the error of a handler panics") {
		t.Errorf("after the panic: %+v", s)
	}
}
