package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

const patience = testkit.Patience

// world is an installation with a log, a table that a processor fills, and nodes.
type world struct {
	*postgrestest.Installation
	pool    *pgxpool.Pool     // of processors
	backend *postgres.Backend // likewise
	store   *eventstore.Store
	filled  string // the table
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, pgtest.Shared(t))
}

func newWorldOn(t *testing.T, server *pgtest.Server) *world {
	t.Helper()
	w := openWorld(t, server, server.Schema(t))
	w.Migrate("processors", "events")
	w.Exec("CREATE TABLE " + w.filled + " (number bigint NOT NULL, term bigint, at timestamptz DEFAULT clock_timestamp())")
	return w
}

// openWorld opens a world that is there, or will be.
func openWorld(t *testing.T, server *pgtest.Server, schema string) *world {
	t.Helper()
	i := postgrestest.On(t, server, schema)
	return &world{
		Installation: i, pool: i.Pool, backend: i.Backend, store: eventstore.New(i.Backend, eventstore.Config{}),
		filled: pgx.Identifier{schema, "filled"}.Sanitize(),
	}
}

// group makes a group of one processor, on the log unless it says another, and
// runs it until the test ends, or the returned function is called.
func (w *world) group(node *tenure.Node, config processor.Config) (stop func()) {
	w.Helper()
	return w.groupIn(w.pool, node, config)
}

func (w *world) groupIn(database processor.Database, node *tenure.Node, config processor.Config) (stop func()) {
	w.Helper()
	// Not a role by its key: that is one for all installations of the database.
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), database, processor.GroupConfig{})
	if err != nil {
		w.Fatal(err)
	}
	if config.Log.Name == "" {
		config.Log = w.store.Log()
	}
	if err := group.Add(config); err != nil {
		w.Fatal(err)
	}
	return postgrestest.Run(w, group.Run)
}

// fill is a handler that writes the number of each event.
func (w *world) fill(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
	numbers := make([]string, len(batch))
	for i, event := range batch {
		numbers[i] = string(event.Data)
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+w.filled+" (number) SELECT n::bigint FROM unnest($1::text[]) n", numbers)
	return err
}

func (w *world) append(numbers ...int) {
	w.Helper()
	events := make([]eventstore.NewEvent, len(numbers))
	for i, number := range numbers {
		events[i] = newEvent(number)
	}
	if err := w.store.Append(w.Context(), w.pool, events...); err != nil {
		w.Fatal(err)
	}
}

func newEvent(number int) eventstore.NewEvent {
	return eventstore.NewEvent{Type: "counted", Tags: []string{"stream=a", fmt.Sprintf("number=%d", number)}, Data: number}
}

// numbers are those that the handler wrote, in their order.
func (w *world) numbers() []int {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), "SELECT number FROM "+w.filled+" ORDER BY at, ctid")
	if err != nil {
		w.Fatal(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		w.Fatal(err)
	}
	return numbers
}

func TestEventsAreHandledInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, BatchSize: 2})
	w.append(4, 5)
	w.Await("all events", func() bool { return len(w.numbers()) >= 5 })
	for i, number := range w.numbers() {
		if number != i+1 {
			t.Fatalf("handled %v", w.numbers())
		}
	}
}

// A handler that receives only cursors lets the server read the rest.
func TestCursorsOnlyPassesCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	copied := pgtest.SQL(w.backend, "INSERT INTO "+w.filled+` (number)
		SELECT data::bigint FROM {events}
		WHERE (transaction_id, position) BETWEEN ($1::text::xid8, $2::bigint) AND ($3::text::xid8, $4::bigint)
			AND tags @> ARRAY['stream=a']`)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "copies", BatchSize: 2, CursorsOnly: true, Selection: processor.Selection{Types: []string{"counted"}},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			for _, e := range batch {
				if e.Type != "counted" || e.Tags != nil || e.Data != nil || !e.OccurredAt.IsZero() {
					t.Errorf("given %+v", e)
				}
			}
			first, last := batch[0].Cursor, batch[len(batch)-1].Cursor
			_, err := tx.Exec(ctx, copied, fmt.Sprint(first.Transaction), first.Position, fmt.Sprint(last.Transaction), last.Position)
			return err
		},
	})
	w.append(1, 2, 3)
	w.append(4, 5)
	w.Await("all events", func() bool { return len(w.numbers()) >= 5 })
	if numbers := w.numbers(); !slices.Equal(numbers, []int{1, 2, 3, 4, 5}) {
		t.Errorf("copied %v", numbers)
	}
}

// A transaction that began first gets its position later: a cursor on the
// position alone would lose its event.
func TestEventsWithInvertedPositionsAreNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond})
	ctx := t.Context()
	begin := func() pgx.Tx {
		tx, err := w.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	add := func(tx pgx.Tx, number int) {
		if err := w.store.Append(ctx, tx, eventstore.NewEvent{Type: "counted", Data: number}); err != nil {
			t.Fatal(err)
		}
	}
	first := begin()
	second := begin()
	add(second, 2) // position 1
	add(first, 1)  // position 2
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	w.Await("the first", func() bool { return len(w.numbers()) >= 1 })
	if err := second.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	w.Await("the second", func() bool { return len(w.numbers()) >= 2 })
	if got := w.numbers(); got[0] != 1 || got[1] != 2 {
		t.Errorf("handled %v", got)
	}
}

// silent is a database that does not answer the first reading of the log.
type silent struct {
	*pgxpool.Pool
	asked atomic.Bool
}

func (s *silent) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "pg_snapshot_xmin") && s.asked.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.Pool.Query(ctx, sql, args...)
}

// A read without a response does not stop the processor for its term.
func TestUnansweredReadDoesNotStopProcessor(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	database := &silent{Pool: w.pool}
	group, err := processor.NewGroup(w.Node("a", tenure.Config{Lease: 3 * time.Second}), tenure.NamedRole("views"), database, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	config := processor.Config{Name: "counts", Log: w.store.Log(), Handle: w.fill, HandleTimeout: time.Second, PollInterval: 10 * time.Millisecond}
	if err := group.Add(config); err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, group.Run)
	w.Await("the event", func() bool { return len(w.numbers()) == 1 })
	stop()
	if !database.asked.Load() {
		t.Error("every reading was answered")
	}
}
