package processor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
)

func (w *world) management() *processor.Admin {
	return processor.NewAdmin(w.backend, w.pool)
}

// show returns the status of a processor, zero if no leader has added it yet.
func (w *world) show(name string) processor.Status {
	w.Helper()
	all, err := w.management().List(w.Context(), name)
	w.must(err)
	if len(all) == 0 {
		return processor.Status{}
	}
	return all[0]
}

// must fails the test at an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantChanges checks the record of changes of all processors, the latest first.
func (w *world) wantChanges(want ...string) {
	w.Helper()
	changes, err := w.management().Changes(w.Context(), "", 100)
	w.must(err)
	var got []string
	for _, c := range changes {
		got = append(got, strings.TrimSpace(strings.Join([]string{c.By, c.Processor, c.Action, c.Detail}, " ")))
		if since := time.Since(c.At); since < -time.Minute || since > 10*time.Minute {
			w.Errorf("a change was made at %v", c.At)
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("the changes are %q; want %q", got, want)
	}
}

// Pause returns when the batch in flight has ended, and no event is handled
// until the processor is resumed. The same holds for a second pause.
func TestPauseWaitsForTheBatchInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	entered, release := make(chan struct{}, 10), make(chan struct{}, 10)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 1, PollInterval: 10 * time.Millisecond,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			entered <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done(): // the test has failed
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.pauseInFlight("counts", entered, release, 1)
	w.must(w.management().Resume(t.Context(), "counts", "ann"))
	w.pauseInFlight("counts", entered, release, 1, 2)
	w.append(4)
	w.Await("that it rests", func() bool { return !w.show("counts").Busy })
	if got := w.numbers(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("handled %v while paused, want nothing after the second event", got)
	}
	w.must(w.management().Retry(t.Context(), "counts", "bob")) // no way round a pause
	if s := w.show("counts"); s.Status != processor.Paused {
		t.Errorf("the status is %s after a retry", s.Status)
	}
	w.must(w.management().Resume(t.Context(), "counts", "ann"))
	w.must(w.management().Resume(t.Context(), "counts", "ann")) // nothing to do
	close(release)
	w.Await("the others", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3, 4}) })
	w.wantChanges("ann counts resume", "bob counts retry", "ann counts pause", "ann counts resume", "ann counts pause")
}

// pauseInFlight pauses a processor while a batch is in flight, and checks which events
// have been handled when the pause returns. The pause must have read the processor
// before the batch may end.
func (w *world) pauseInFlight(name string, entered <-chan struct{}, release chan<- struct{}, handled ...int) {
	w.Helper()
	w.Await("a batch in flight", func() bool { return len(entered) > 0 })
	<-entered
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	looks := &counting{Database: w.pool, asked: new(atomic.Int64)}
	paused := make(chan error, 1)
	go func() { paused <- processor.NewAdmin(w.backend, looks).Pause(ctx, name, "ann") }()
	w.Await("a second look", func() bool { return looks.polls.Load() > 1 || len(paused) > 0 })
	if len(paused) > 0 {
		w.Fatalf("the pause returned while the batch was in flight: %v", <-paused)
	}
	release <- struct{}{}
	if err := <-paused; err != nil {
		w.Fatalf("the pause did not return after the batch in flight: %v", err)
	}
	if got := w.numbers(); !slices.Equal(got, handled) {
		w.Errorf("when the pause returned %v had been handled, want %v: no batch after the one in flight", got, handled)
	}
}

// If the context of Pause ends first, the processor stays paused.
func TestPauseHoldsAfterItsContextEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	entered, release := make(chan struct{}), make(chan struct{})
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts",
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			close(entered)
			<-release
			return nil
		},
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	paused := make(chan error, 1)
	go func() { paused <- w.management().Pause(ctx, "counts", "ann") }()
	w.Await("the pause to be asked for", func() bool { return w.show("counts").Status == processor.Paused })
	cancel()
	if err := <-paused; !errors.Is(err, context.Canceled) {
		t.Errorf("the pause returned %v", err)
	}
	close(release)
	w.Await("the pause", func() bool { s := w.show("counts"); return s.Status == processor.Paused && !s.Busy })
}

func TestRewindAndRebuildHandleEventsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	w.append(3)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond,
		Reset: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "TRUNCATE "+w.filled)
			return err
		},
	})
	w.Await("all", func() bool { return len(w.numbers()) == 3 })
	var second processor.Cursor
	w.must(w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT transaction_id, position FROM {events} WHERE data = '2'")).
		Scan(&second.Transaction, &second.Position))
	m := w.management()
	w.must(m.Rewind(t.Context(), "counts", second, "ann"))
	w.Await("the third again", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3, 3}) })
	w.must(m.Rebuild(t.Context(), "counts", "bob"))
	w.Await("all again", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3}) })
	w.wantChanges("bob counts rebuild", "ann counts rewind "+second.String())
	if s := w.show("counts"); s.Rebuilding || s.Processed != 3 || s.Log != "events" {
		t.Errorf("after the rebuild: %+v", s)
	}

	future := processor.Cursor{Transaction: second.Transaction + 1_000_000}
	if err := m.Rewind(t.Context(), "counts", future, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a rewind to %v: %v", future, err)
	}
}

func TestAdminRejectsInvalidChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill})
	m := w.management()
	w.Await("the processor", func() bool { return w.show("counts").Name != "" })
	ctx := t.Context()
	for doing, refused := range map[string]func(name, by string) error{
		"pause":  func(name, by string) error { return m.Pause(ctx, name, by) },
		"resume": func(name, by string) error { return m.Resume(ctx, name, by) },
		"retry":  func(name, by string) error { return m.Retry(ctx, name, by) },
		"rewind": func(name, by string) error { return m.Rewind(ctx, name, processor.Cursor{}, by) },
		"rebuild": func(name, by string) error {
			if name == "counts" && by == "ann" {
				return nil // tried below
			}
			return m.Rebuild(ctx, name, by)
		},
		"skip":       func(name, by string) error { _, err := m.Skip(ctx, name, processor.Cursor{}, by); return err },
		"replay":     func(name, by string) error { _, err := m.Replay(ctx, name, nil, by); return err },
		"replay one": func(name, by string) error { _, err := m.Replay(ctx, name, []int64{1}, by); return err },
		"dismiss":    func(name, by string) error { _, err := m.Dismiss(ctx, name, nil, by); return err },
		"repair":     func(name, by string) error { _, err := m.Repair(ctx, name, by); return err },
	} {
		var unknown *processor.UnknownError
		if err := refused("count", "ann"); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"counts"}) {
			t.Errorf("%s of an unknown processor: %v", doing, err)
		}
		if err := refused("counts", " "); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s without a requester: %v", doing, err)
		}
	}
	if err := m.Rebuild(ctx, "counts", "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a rebuild without Reset: %v", err)
	}
	if _, err := m.Skip(ctx, "counts", processor.Cursor{}, "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("skipping where nothing fails: %v", err)
	}
	if n, err := m.Replay(ctx, "counts", nil, "ann"); n != 0 || err != nil {
		t.Errorf("replaying no dead letters: %d, %v", n, err)
	}
	if n, err := m.Dismiss(ctx, "counts", nil, "ann"); n != 0 || err != nil {
		t.Errorf("dismissing no dead letters: %d, %v", n, err)
	}
	if _, err := m.Lag(ctx, "counts", "other"); err == nil {
		t.Error("the lag of an unknown processor was read")
	}
	for limited, err := range map[string]error{
		"dead letters": second(m.DeadLetters(ctx, "counts", 0)), "changes": second(m.Changes(ctx, "", 0)),
	} {
		if !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s without a limit: %v", limited, err)
		}
	}
	w.wantChanges()
}

func second[T any](_ T, err error) error { return err }
