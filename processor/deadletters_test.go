package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// flawed is a handler that fails while a batch contains the number 2, until it is
// fixed.
func (w *world) flawed(mended *atomic.Bool) func(context.Context, pgx.Tx, []processor.Event) error {
	return func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		if err := w.fill(ctx, tx, batch); err != nil {
			return err
		}
		if !mended.Load() && slices.ContainsFunc(batch, func(e processor.Event) bool { return string(e.Data) == "2" }) {
			return errors.New("two is too much")
		}
		return nil
	}
}

func (w *world) letters(name string) []processor.DeadLetter {
	w.Helper()
	letters, err := w.management().DeadLetters(w.Context(), name, 100)
	w.must(err)
	return letters
}

func TestSkipMovesFailingEventToDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var mended atomic.Bool
	config := processor.Config{
		Name: "counts", Handle: w.flawed(&mended), PollInterval: 10 * time.Millisecond,
		Retry: retry.FixedInterval{Interval: 5 * time.Millisecond}, MaxAttempts: 3,
	}
	w.group(w.Node("a", tenure.Config{}), config)
	w.Await("the failure", func() bool { return w.show("counts").Status == processor.Failed })
	failing := w.show("counts").Failing
	place, err := w.management().Skip(t.Context(), "counts", processor.Cursor{}, "ann")
	w.must(err)
	if place != failing {
		t.Errorf("skipped %v; %v was failing", place, failing)
	}
	w.Await("the others", func() bool { return slices.Equal(w.numbers(), []int{1, 3}) })
	s := w.show("counts")
	if s.Status != processor.Active || s.Errors != 0 || s.Failing != (processor.Cursor{}) || s.DeadLetters != 1 || s.Skipped != 1 {
		t.Errorf("after skipping: %+v", s)
	}
	letters := w.letters("counts")
	if len(letters) != 1 || letters[0].SkippedBy != "ann" || letters[0].Event != place || !strings.Contains(letters[0].Error, "too much") {
		t.Fatalf("the dead letters are %+v", letters)
	}
	mended.Store(true)
	n, err := w.management().Replay(t.Context(), "counts", []int64{letters[0].ID}, "bob")
	w.must(err)
	w.Await("the replay", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 2}) })
	if n != 1 || len(w.letters("counts")) != 0 {
		t.Errorf("%d replayed; dead letters are %+v", n, w.letters("counts"))
	}
	w.wantChanges("bob counts replay dead letters: 1", "ann counts skip "+place.String())
}

// A skip that is repeated because its response was lost skips no second event.
func TestRepeatedSkipSkipsNoOtherEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 1, PollInterval: 10 * time.Millisecond, MaxAttempts: 1,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return errors.New("no") },
	})
	fails := func(after processor.Cursor) (failing processor.Cursor) {
		t.Helper()
		w.Await("a failure", func() bool {
			s := w.show("counts")
			failing = s.Failing
			return s.Status == processor.Failed && after.Before(failing)
		})
		return failing
	}
	first := fails(processor.Cursor{})
	for range 2 {
		place, err := w.management().Skip(t.Context(), "counts", first, "ann")
		w.must(err)
		if place != first {
			t.Errorf("skipped %v; want %v", place, first)
		}
		if second := fails(first); second == first || w.show("counts").Failing != second {
			t.Errorf("then %v fails", second)
		}
	}
	if letters := w.letters("counts"); len(letters) != 1 || letters[0].Event != first {
		t.Errorf("the dead letters are %+v; want the first event", letters)
	}
	w.wantChanges("ann counts skip " + first.String())
	second := w.show("counts").Failing
	other := processor.Cursor{Transaction: second.Transaction + 1000, Position: second.Position}
	_, err := w.management().Skip(t.Context(), "counts", other, "ann")
	if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), second.String()) {
		t.Errorf("skipping an event that does not fail: %v; want %v named", err, second)
	}
}

// An attempt that succeeds after its event was skipped does not count.
func TestSkipInvalidatesConcurrentAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	var attempts atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 1, PollInterval: 10 * time.Millisecond, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			switch attempts.Add(1) {
			case 1:
				return errors.New("not yet")
			case 2:
				close(entered)
				<-release
			}
			return w.fill(ctx, tx, batch)
		},
	})
	<-entered
	_, err := w.management().Skip(t.Context(), "counts", processor.Cursor{}, "ann")
	w.must(err)
	close(release)
	w.Await("the second", func() bool { return len(w.numbers()) > 0 })
	if got := w.numbers(); !slices.Equal(got, []int{2}) {
		t.Errorf("handled %v", got)
	}
}

// An outage blames no event.
func TestSkipIsRefusedDuringOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "sent", BatchSize: 1, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Publish: func(context.Context, *tenure.Term, []processor.Event) (int, error) {
			return 0, fmt.Errorf("%w: closed for today", processor.ErrUnavailable)
		},
	})
	w.Await("failures", func() bool { return w.show("sent").Errors > 2 })
	if _, err := w.management().Skip(t.Context(), "sent", processor.Cursor{}, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "closed for today") {
		t.Errorf("skipping returned %v", err)
	}
}

// At first it is not known which event of a batch fails.
func TestSkipIsRefusedBeforeTheEventIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Retry: retry.FixedInterval{Interval: time.Hour},
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return errors.New("no") },
	})
	w.Await("the failure", func() bool { return w.show("counts").Errors == 1 })
	if _, err := w.management().Skip(t.Context(), "counts", processor.Cursor{}, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("skipping returned %v", err)
	}
}

// Dead letters are replayed while the log is idle. An event that fails again
// stays a dead letter with the new error, and no other is lost.
func TestReplayDeadLetters(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"handle", "publish"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(1, 2, 3, 4)
			var trouble atomic.Value
			trouble.Store("first")
			check := func(e processor.Event) error {
				switch text := trouble.Load().(string); {
				case text == "":
					return nil
				case string(e.Data) == "2", string(e.Data) == "3" && text == "first":
					return errors.New(text)
				}
				return nil
			}
			config := processor.Config{
				Name: "counts", BatchSize: 1, MaxAttempts: 2, Poison: processor.PoisonDeadLetter,
				Retry: retry.FixedInterval{Interval: time.Millisecond}, PollInterval: time.Minute, MaxPollInterval: time.Minute,
			}
			if mode == "handle" {
				config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					return errors.Join(w.fill(ctx, tx, batch), check(batch[0]))
				}
			} else {
				config.Publish = func(ctx context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
					if err := check(batch[0]); err != nil {
						return 0, err
					}
					return 1, pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.fill(ctx, tx, batch) })
				}
			}
			w.group(w.Node("a", tenure.Config{}), config)
			w.Await("the others", func() bool { return slices.Equal(w.numbers(), []int{1, 4}) })
			letters := w.letters("counts")
			if len(letters) != 2 || letters[0].Attempts != 2 || letters[0].Error != "first" || letters[0].SkippedBy != "" {
				t.Fatalf("the dead letters are %+v", letters)
			}

			m := w.management()
			if _, err := m.Replay(t.Context(), "counts", []int64{letters[0].ID, 999_999}, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("replaying an unknown dead letter: %v", err)
			}
			if w.letters("counts")[0].Replay {
				t.Error("a replay that was refused continues")
			}
			trouble.Store("second")
			n, err := m.Replay(t.Context(), "counts", nil, "ann")
			w.must(err)
			if n != 2 {
				t.Errorf("%d are replayed", n)
			}
			w.Await("the replay", func() bool { return slices.Equal(w.numbers(), []int{1, 4, 3}) && len(w.letters("counts")) == 1 })
			left := w.letters("counts")
			if len(left) != 1 || left[0].Error != "second" || left[0].Attempts != 3 || left[0].Replay || left[0].ID != letters[0].ID {
				t.Errorf("the dead letters are %+v", left)
			}
			trouble.Store("")
			if n, err := m.Replay(t.Context(), "counts", nil, "ann"); n != 1 || err != nil {
				t.Errorf("replaying the other: %d, %v", n, err)
			}
			w.Await("the second replay", func() bool { return slices.Equal(w.numbers(), []int{1, 4, 3, 2}) && len(w.letters("counts")) == 0 })
		})
	}
}

// After a rewind the events are handled again, so their dead letters must not
// be replayed too.
func TestRewindRemovesDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var mended atomic.Bool
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.flawed(&mended), Poison: processor.PoisonDeadLetter, MaxAttempts: 2,
		Retry: retry.FixedInterval{Interval: time.Millisecond}, PollInterval: 10 * time.Millisecond,
	})
	w.Await("the dead letter", func() bool { return slices.Equal(w.numbers(), []int{1, 3}) })
	mended.Store(true)
	w.must(w.management().Rewind(t.Context(), "counts", processor.Cursor{}, "ann"))
	w.Await("all again", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 1, 2, 3}) })
	if letters := w.letters("counts"); len(letters) != 0 {
		t.Errorf("the dead letters are %+v", letters)
	}
}

// An event that is no longer in the log cannot be replayed; the error says so.
func TestReplayReportsMissingEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var mended atomic.Bool
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.flawed(&mended), Poison: processor.PoisonDeadLetter, MaxAttempts: 1,
		Retry: retry.FixedInterval{Interval: time.Millisecond}, PollInterval: 10 * time.Millisecond,
	})
	w.Await("the dead letter and the events beside it", func() bool { return slices.Equal(w.numbers(), []int{1, 3}) })
	w.Exec(pgtest.SQL(w.backend, "DELETE FROM {events} WHERE data = '2'"))
	mended.Store(true)
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the refusal", func() bool {
		letters := w.letters("counts")
		return len(letters) == 1 && !letters[0].Replay && strings.Contains(letters[0].Error, "no longer")
	})
}

// A dismissed dead letter is listed last with who dismissed it, counts no longer, and is not
// replayed with all others. A second dismissal changes nothing, and a replay takes it back.
func TestDismissedDeadLetterCountsNoLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := w.management(), t.Context()
	w.Exec(`INSERT INTO {processors} (name, kind, role) VALUES ('counts', 'view', 'views')`)
	w.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, skipped_by, replay)
		SELECT 'counts', '7', n, 'two is too much', 5, 1, CASE n WHEN 2 THEN 'eve' ELSE '' END, n = 1 FROM generate_series(1, 4) n`)
	w.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term) VALUES ('others', '7', 1, 'no', 1, 1)`)
	all := w.letters("counts")
	ids := []int64{all[0].ID, all[1].ID}
	for _, by := range []string{"ann", "bob"} { // again, as after a lost response
		if n, err := m.Dismiss(ctx, "counts", ids, by); n != 2 || err != nil {
			t.Fatalf("%d dead letters are dismissed, %v; want 2", n, err)
		}
	}
	letters := w.letters("counts")
	if len(letters) != 4 || letters[2].ID != ids[0] || letters[3].ID != ids[1] || letters[0].DismissedBy != "" || !letters[0].DismissedAt.IsZero() {
		t.Fatalf("the dead letters are %+v", letters)
	}
	for _, l := range letters[2:] {
		if l.DismissedBy != "ann" || time.Since(l.DismissedAt).Abs() > time.Minute || l.Replay {
			t.Errorf("a dismissed dead letter is %+v", l)
		}
	}
	if s := w.show("counts"); s.DeadLetters != 2 || s.Skipped != 0 {
		t.Errorf("the processor has %d dead letters, %d of them skipped; want 2 and 0", s.DeadLetters, s.Skipped)
	}
	foreign := pgtest.SQL(w.backend, `SELECT id FROM {dead_letters} WHERE processor = 'others'`)
	var other int64
	w.must(w.pool.QueryRow(ctx, foreign).Scan(&other))
	for _, wrong := range []int64{other, 999} {
		if _, err := m.Dismiss(ctx, "counts", []int64{letters[0].ID, wrong}, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("dismissing %d: %v", wrong, err)
		}
	}
	if n, err := m.Replay(ctx, "counts", nil, "ann"); n != 2 || err != nil {
		t.Errorf("%d are replayed, %v; want the 2 that are not dismissed", n, err)
	}
	if n, err := m.Replay(ctx, "counts", ids[:1], "cleo"); n != 1 || err != nil {
		t.Errorf("%d are replayed, %v; want 1", n, err)
	}
	if s := w.show("counts"); s.DeadLetters != 3 {
		t.Errorf("after a replay of a dismissed one, %d dead letters count; want 3", s.DeadLetters)
	}
	if n, err := m.Dismiss(ctx, "counts", nil, "ann"); n != 3 || err != nil || w.show("counts").DeadLetters != 0 {
		t.Errorf("%d are dismissed, %v, and %d remain", n, err, w.show("counts").DeadLetters)
	}
	w.wantChanges("ann counts dismiss dead letters: 3", "cleo counts replay dead letters: 1", "ann counts replay dead letters: 2", "ann counts dismiss dead letters: 2")
}

// A dead letter that is dismissed while its replay is in progress stays dismissed, and what
// the handler did is rolled back. A later failure of the event makes it count again.
func TestDismissEndsAReplayInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var mended atomic.Bool
	handle := w.flawed(&mended)
	entered, goOn := make(chan struct{}, 10), make(chan struct{})
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, Retry: retry.FixedInterval{Interval: 5 * time.Millisecond}, MaxAttempts: 1, Poison: processor.PoisonDeadLetter,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if mended.Load() {
				entered <- struct{}{}
				<-goOn
			}
			return handle(ctx, tx, batch)
		},
	})
	w.Await("the dead letter", func() bool { return w.show("counts").DeadLetters == 1 && slices.Equal(w.numbers(), []int{1, 3}) })
	mended.Store(true)
	n, err := w.management().Replay(t.Context(), "counts", nil, "bob")
	w.must(err)
	<-entered
	dismissed, err := w.management().Dismiss(t.Context(), "counts", nil, "ann")
	w.must(err)
	close(goOn)
	w.append(4)
	w.Await("the later event", func() bool { return slices.Contains(w.numbers(), 4) })
	letters := w.letters("counts")
	if n != 1 || dismissed != 1 || len(letters) != 1 || letters[0].DismissedBy != "ann" || letters[0].Replay || !slices.Equal(w.numbers(), []int{1, 3, 4}) {
		t.Errorf("%d replayed, %d dismissed, the dead letters are %+v, the numbers %v", n, dismissed, letters, w.numbers())
	}
	mended.Store(false)
	w.must(w.management().Rewind(t.Context(), "counts", processor.Cursor{}, "ann"))
	w.Await("the failure of the event", func() bool { return w.show("counts").DeadLetters == 1 })
}
