package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// A poison event is found in its batch; earlier events are handled, and later
// ones wait.
func TestPoisonEventIsFoundInItsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3, 4, 5)
	sizes := make(chan int, 10) // of the batches with the event at fault
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", MaxAttempts: 3, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			for _, event := range batch {
				if string(event.Data) == "4" {
					select {
					case sizes <- len(batch):
					default: // too many already
					}
					return errors.New("four is too many\x00\xff")
				}
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("the failure after MaxAttempts", func() bool { return w.exists("counts") && w.show("counts").Status == processor.Failed })
	if got := w.numbers(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("handled %v", got)
	}
	if s := w.show("counts"); s.Errors != 3 || !strings.HasPrefix(s.LastError, "four is too many") {
		t.Errorf("the processor has %d errors, the last one %q", s.Errors, s.LastError)
	}
	var got []int
	for len(sizes) > 0 {
		got = append(got, <-sizes)
	}
	if want := []int{5, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("the batches that failed had %v events, want %v: after a failure events are tried one at a time", got, want)
	}
}

// A leader that takes over after a failed batch tries its events one at a time,
// so the last attempt is with a single event, which is shown.
func TestNextLeaderTriesEventsOneAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	sizes := make(chan int, 10)
	config := processor.Config{
		Name: "counts", MaxAttempts: 2, Retry: retry.FixedInterval{Interval: time.Hour},
		Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
			select {
			case sizes <- len(batch):
			default: // too many already
			}
			return errors.New("never")
		},
	}
	stop := w.group(w.Node("a", tenure.Config{}), config)
	w.Await("an attempt", func() bool { return w.exists("counts") && w.show("counts").Errors == 1 })
	stop()
	w.Exec("UPDATE " + pgx.Identifier{w.Schema, "tenure_processors"}.Sanitize() + " SET next_attempt_at = NULL")
	w.group(w.Node("b", tenure.Config{}), config)
	w.Await("the end", func() bool { return w.show("counts").Status == processor.Failed })
	if first, second := <-sizes, <-sizes; first != 3 || second != 1 {
		t.Errorf("the first leader tried %d events together and the next one %d, want 3 and 1", first, second)
	}
	if s := w.show("counts"); s.Failing == (processor.Cursor{}) {
		t.Error("the event that was tried last is not shown as the one that fails")
	}
}

// exists reports whether a processor has been added.
func (w *world) exists(name string) bool {
	_, err := w.management().Show(w.Context(), name)
	return err == nil
}

// A handler that ends or aborts its transaction has failed, with the usual
// pauses and limits.
func TestHandlerThatEndsItsTransactionFails(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(context.Context, *world, pgx.Tx) error{
		"by a statement whose error it hides": func(ctx context.Context, _ *world, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT 1 / 0") // that is the point
			return nil
		},
		"by ending it": func(ctx context.Context, _ *world, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "ROLLBACK")
			return err
		},
		"by what fails at the commit": func(ctx context.Context, w *world, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+w.deferring()+" VALUES (1), (1)")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Exec("CREATE TABLE " + w.deferring() + " (number int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
			w.append(1)
			w.group(w.Node("a", tenure.Config{}), processor.Config{
				Name: "counts", MaxAttempts: 3, Retry: retry.FixedInterval{Interval: time.Millisecond},
				Handle: func(ctx context.Context, tx pgx.Tx, _ []processor.Event) error { return spoil(ctx, w, tx) },
			})
			w.Await("the failure of a handler that spoils its transaction", func() bool { return w.exists("counts") && w.show("counts").Status == processor.Failed })
			if s := w.show("counts"); s.Errors != 3 || s.Processed != 0 {
				t.Errorf("the processor has %d errors and has handled %d events", s.Errors, s.Processed)
			}
		})
	}
}

// deferring is a table that rejects its rows only at the commit.
func (w *world) deferring() string { return pgx.Identifier{w.Schema, "deferring"}.Sanitize() }

// While a processor pauses after a failure, neither notifications of inserts
// nor a new leader start an attempt.
func TestRetryPauseIgnoresInserts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var attempts atomic.Int64
	config := processor.Config{
		Name: "counts", Retry: retry.FixedInterval{Interval: time.Hour},
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			attempts.Add(1)
			return errors.New("not today")
		},
	}
	first := w.group(w.Node("first", tenure.Config{}), config)
	w.append(1)
	w.Await("the attempt", func() bool { return w.exists("counts") && w.show("counts").Errors == 1 })
	for number := range 20 {
		w.append(number)
	}
	second := w.Node("second", tenure.Config{})
	w.group(second, config)
	first()
	w.Await("the second node", func() bool {
		s := w.show("counts")
		return s.NodeName == "second" && s.Led
	})
	w.append(21)
	w.Await("all new events", func() bool { return w.show("counts").Behind >= 1 || attempts.Load() > 1 })
	if s := w.show("counts"); attempts.Load() != 1 || s.Errors != 1 {
		t.Errorf("there were %d attempts, and %d were recorded", attempts.Load(), s.Errors)
	}
}

// Attempts of all terms count.
func TestAttemptsCountAcrossTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	config := processor.Config{
		Name: "counts", MaxAttempts: 3, Retry: retry.Func(func(a retry.Failure) (time.Duration, bool) {
			if a.Attempt == 2 {
				return time.Hour, true
			}
			return time.Millisecond, true
		}),
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return errors.New("never") },
	}
	stop := w.group(w.Node("a", tenure.Config{}), config)
	w.Await("two attempts", func() bool { return w.exists("counts") && w.show("counts").Errors == 2 })
	stop()
	w.Exec("UPDATE " + pgx.Identifier{w.Schema, "tenure_processors"}.Sanitize() + " SET next_attempt_at = NULL")
	w.group(w.Node("b", tenure.Config{}), config)
	w.Await("the failure after MaxAttempts", func() bool { return w.show("counts").Status == processor.Failed })
	if s := w.show("counts"); s.Errors != 3 {
		t.Errorf("it failed after %d attempts", s.Errors)
	}
}

// A retry strategy that panics ends neither the program nor the processor.
func TestPanicOfRetryStrategyIsCaught(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var calls atomic.Int64
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Retry: retry.Func(func(retry.Failure) (time.Duration, bool) { panic("the retry strategy of a user panics") }),
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			if calls.Add(1) == 1 {
				return errors.New("once")
			}
			return nil
		},
	})
	w.Await("the event", func() bool { return w.exists("counts") && w.show("counts").Processed == 1 })
}

// faulty is a database in which every third commit is answered by an error, in
// turns one that has happened and one that has not.
type faulty struct {
	*pgxpool.Pool
	commits atomic.Int64
}

type faultyTx struct {
	pgx.Tx
	database *faulty
}

func (f *faulty) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := f.Pool.BeginTx(ctx, options)
	return &faultyTx{tx, f}, err
}

var errLost = errors.New("the connection was lost")

func (f *faultyTx) Commit(ctx context.Context) error {
	switch f.database.commits.Add(1) % 6 {
	case 3:
		return errors.Join(f.Tx.Commit(ctx), errLost)
	case 0:
		return errors.Join(f.Tx.Rollback(ctx), errLost)
	}
	return f.Tx.Commit(ctx)
}

// After a commit with an unknown outcome, no event is handled twice and none is
// lost.
func TestEventsAreHandledOnceAfterUnknownCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.groupIn(&faulty{Pool: w.pool}, w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, BatchSize: 2, PollInterval: time.Millisecond,
	})
	const events = 30
	for number := range events {
		w.append(number)
	}
	w.Await("all events", func() bool { return w.exists("counts") && w.show("counts").Processed >= events })
	for i, number := range w.numbers() {
		if number != i || i >= events {
			t.Fatalf("handled %v; want each event once, in order", w.numbers())
		}
	}
}

// Within a term nothing is published twice, even if the progress cannot be
// saved or the outcome of saving is unknown.
func TestPublisherSendsOncePerTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var published []string
	w.groupIn(&faulty{Pool: w.pool}, w.Node("a", tenure.Config{}), processor.Config{
		Name: "sends", BatchSize: 3, PollInterval: time.Millisecond, ProgressInterval: time.Millisecond,
		Retry: retry.FixedInterval{Interval: time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			taken := 1 + len(published)%len(batch)
			for _, event := range batch[:taken] {
				published = append(published, string(event.Data))
			}
			return taken, fmt.Errorf("%d were enough", taken)
		},
	})
	const events = 30
	var want []string
	for number := range events {
		w.append(number)
		want = append(want, fmt.Sprint(number))
	}
	w.Await("all events", func() bool { return w.exists("sends") && w.show("sends").Processed >= events })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(published, want) {
		t.Errorf("published %v; want each event once, in order", published)
	}
	if n := w.show("sends").Processed; n != events {
		t.Errorf("%d events were counted", n)
	}
}
