package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// batches records the batches that a handler got.
type batches struct {
	mu  sync.Mutex
	all [][]int
}

func (b *batches) add(batch []processor.Event) int {
	var numbers []int
	for _, e := range batch {
		n, _ := strconv.Atoi(string(e.Data))
		numbers = append(numbers, n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, numbers)
	return len(b.all)
}

func (b *batches) now() [][]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// deadLetters runs a processor until it has set aside events 1 to n.
func (w *world) deadLetters(t *testing.T, config processor.Config, n int) {
	t.Helper()
	var mended atomic.Bool
	poison := fmt.Errorf("%w: not yet", processor.ErrPoison)
	if handle := config.Handle; handle != nil {
		config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if !mended.Load() {
				return poison
			}
			return handle(ctx, tx, batch)
		}
	}
	if publish := config.Publish; publish != nil {
		config.Publish = func(ctx context.Context, term *tenure.Term, batch []processor.Event) (int, error) {
			if !mended.Load() {
				return 0, poison
			}
			return publish(ctx, term, batch)
		}
	}
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i + 1
	}
	w.append(numbers...)
	w.group(w.Node("a", tenure.Config{}), config)
	w.Await("the dead letters", func() bool { return w.exists("counts") && w.show("counts").DeadLetters == n })
	mended.Store(true)
}

// quietServer returns a server whose horizon no other test holds.
func quietServer(t *testing.T) *pgtest.Server {
	t.Helper()
	return pgtest.Start(t, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
}

// A live event that is appended during a replay waits for at most two batches, and the
// dead letters are replayed in batches, in log order.
func TestReplaysTakeTurnsWithLiveEvents(t *testing.T) {
	t.Parallel()
	const letters, size, live = 60, 10, 1001
	server := quietServer(t)
	for _, mode := range []string{"handle", "publish"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorldOn(t, server)
			var replayed batches
			config := processor.Config{
				Name: "counts", BatchSize: size, PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
				Retry: retry.FixedInterval{Interval: time.Millisecond},
			}
			record := func(batch []processor.Event) {
				if replayed.add(batch) == 2 {
					w.append(live)
				}
			}
			if mode == "handle" {
				config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					record(batch)
					return w.fill(ctx, tx, batch)
				}
			} else {
				config.Publish = func(ctx context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
					record(batch)
					return len(batch), pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.fill(ctx, tx, batch) })
				}
			}
			w.deadLetters(t, config, letters)
			_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
			w.must(err)
			w.Await("all events", func() bool { return len(w.numbers()) == letters+1 && len(w.letters("counts")) == 0 })
			all := replayed.now()
			at := slices.IndexFunc(all, func(batch []int) bool { return slices.Contains(batch, live) })
			if at < 0 || at > 4 {
				t.Errorf("the live event waited for more than two batches: %v", all)
			}
			var order []int
			for _, batch := range all {
				if !slices.Contains(batch, live) {
					order = append(order, batch...)
				}
			}
			if len(all) != letters/size+1 || !slices.IsSorted(order) || len(order) != letters {
				t.Errorf("the dead letters are replayed in %d batches: %v; want %d, in order", len(all), all, letters/size+1)
			}
		})
	}
}

// A replay that fails delays no live event, and a bad event fails no other: the batch is
// repeated one event at a time.
func TestFailingReplayOfABatchFailsOneEvent(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"handle", "publish"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bad := func(e processor.Event) bool { return string(e.Data) == "3" }
			config := processor.Config{
				Name: "counts", BatchSize: 5, PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
				Retry: retry.FixedInterval{Interval: time.Millisecond},
			}
			if mode == "handle" {
				config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					if slices.ContainsFunc(batch, bad) {
						panic("three is too much")
					}
					return w.fill(ctx, tx, batch)
				}
			} else {
				config.Publish = func(ctx context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
					taken := len(batch)
					if i := slices.IndexFunc(batch, bad); i >= 0 {
						taken = i
					}
					err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.fill(ctx, tx, batch[:taken]) })
					return taken, err
				}
			}
			w.deadLetters(t, config, 8)
			before := w.letters("counts")[2].Attempts
			_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
			w.must(err)
			w.Await("the others", func() bool {
				return slices.Equal(w.numbers(), []int{1, 2, 4, 5, 6, 7, 8}) && len(w.letters("counts")) == 1
			})
			letter := w.letters("counts")[0]
			if letter.Replay || letter.Attempts != before+1 || letter.Error == "" || strings.Contains(letter.Error, "not yet") {
				t.Errorf("the dead letter is %+v", letter)
			}
			if s := w.show("counts"); s.Status != processor.Active || s.Errors != 0 || mode == "handle" && s.Panics != 2 {
				t.Errorf("after the replay: %+v", s)
			}
		})
	}
}

// CursorsOnly gives the handler a range of the log, so dead letters are replayed one by one.
func TestReplayOfCursorsOnlyHasOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var replayed batches
	w.deadLetters(t, processor.Config{
		Name: "counts", CursorsOnly: true, PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
		Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
			replayed.add(batch)
			return nil
		},
	}, 3)
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the replay", func() bool { return w.show("counts").DeadLetters == 0 })
	if all := replayed.now(); !slices.Equal(slices.Concat(all...), []int{1, 2, 3}) || len(all) != 3 {
		t.Errorf("replayed %v; want one event at a time", all)
	}
}

// A database error of a replay, which is repeated after a pause, delays no live event.
func TestFaultsOfAReplayDelayNoLiveEvent(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, quietServer(t))
	var faults atomic.Int64
	w.deadLetters(t, processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, MaxPollInterval: time.Minute, Poison: processor.PoisonDeadLetter,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if string(batch[0].Data) == "1" {
				if n := faults.Load(); n < 3 { // later ones can outlast the test
					w.append(1001 + int(n))
				}
				faults.Add(1)
				return &pgconn.PgError{Code: "40001", Message: "could not serialize access"}
			}
			return w.fill(ctx, tx, batch)
		},
	}, 1)
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("an event between two faults", func() bool { return faults.Load() >= 3 })
	n := len(w.numbers())
	if n < 2 {
		t.Errorf("after %d faults of a replay, %d live events are handled; want all but the last", faults.Load(), n)
	}
}

// The cost of a replayed event does not grow with the number of dead letters: the next ones
// are found by an index, in order, after the last one, and are marked by their ids. The
// statistics of the table are those before the request.
func TestReplaysAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Set by hand: ten thousand dead letters take minutes to fail, and an audit grows for months.
	w.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
		SELECT 'counts', n::text::xid8, 1, 'no', 1, 1 FROM generate_series(1, 10000) n`)
	w.Exec(`INSERT INTO {changes} (at, changed_by, kind, name, action)
		SELECT now() - n * interval '1 minute', 'ann', 'processor', 'counts', 'replay' FROM generate_series(1, 10000) n`)
	w.Exec("ANALYZE {dead_letters}, {changes}")
	w.Exec("UPDATE {dead_letters} SET replay = true")
	ids := make([]int64, 100)
	for i := range ids {
		ids[i] = int64(5000 + i)
	}
	for name, c := range map[string]struct {
		sql      string
		args     []any
		unwanted string
	}{
		"the next dead letters to replay": {processor.NextReplays, []any{"counts", "5000", 1, 100}, "Sort"},
		"replayed dead letters":           {processor.MarkReplayed, []any{ids}, "dead_letters_replay"},
		"dead letters that failed again":  {processor.ReplayFailed, []any{ids, "no", 1}, "dead_letters_replay"},
	} {
		rows, err := w.pool.Query(t.Context(), "EXPLAIN "+pgtest.SQL(w.backend, c.sql), append([]any{pgx.QueryExecModeExec}, c.args...)...)
		w.must(err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.must(err)
		if text := strings.Join(plan, "\n"); strings.Contains(text, c.unwanted) || strings.Contains(text, "Seq Scan") || !strings.Contains(text, "Index Scan") {
			t.Errorf("%s are found by:\n%s", name, text)
		}
	}
}
