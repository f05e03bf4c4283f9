package processor_test

import (
	"context"
	"fmt"
	"log/slog"
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
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// patience is how long a test waits for something that should happen.
const patience = 20 * time.Second

// world is a schema with a log, a table that a processor fills, and nodes.
type world struct {
	*testing.T
	schema  string
	pool    *pgxpool.Pool
	backend *postgres.Backend
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
	if err := w.backend.Migrate(t.Context(), "processors", "events"); err != nil {
		t.Fatal(err)
	}
	w.exec("CREATE TABLE " + w.filled + " (number bigint NOT NULL, term bigint, at timestamptz DEFAULT clock_timestamp())")
	return w
}

// openWorld opens a world that is there, or will be.
func openWorld(t *testing.T, server *pgtest.Server, schema string) *world {
	t.Helper()
	backend, err := postgres.New(server.DSN(), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	return &world{
		T: t, schema: schema, pool: server.Pool(t), backend: backend, store: eventstore.New(backend, eventstore.Config{}),
		filled: pgx.Identifier{schema, "filled"}.Sanitize(),
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

// node opens a node that closes with the test.
func (w *world) node(name string, config tenure.Config) *tenure.Node {
	w.Helper()
	config.Name, config.Logger = name, slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	node, err := tenure.Open(w.Context(), w.backend, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			w.Error(err)
		}
	})
	return node
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
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- group.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		done <- nil
	}
	w.Cleanup(stop)
	return stop
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

// await waits for a condition on the database.
func (w *world) await(what string, condition func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func TestEventsAreHandledInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	w.group(w.node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, BatchSize: 2})
	w.append(4, 5)
	w.await("all events", func() bool { return len(w.numbers()) >= 5 })
	for i, number := range w.numbers() {
		if number != i+1 {
			t.Fatalf("handled %v", w.numbers())
		}
	}
}

// A handler that is given places alone has the server read the rest.
func TestPlacesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	copied := w.backend.SQL("INSERT INTO " + w.filled + ` (number)
		SELECT data::bigint FROM {events}
		WHERE (transaction_id, position) BETWEEN ($1::text::xid8, $2::bigint) AND ($3::text::xid8, $4::bigint)
			AND tags @> ARRAY['stream=a']`)
	w.group(w.node("a", tenure.Config{}), processor.Config{
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
	w.await("all events", func() bool { return len(w.numbers()) >= 5 })
	if numbers := w.numbers(); !slices.Equal(numbers, []int{1, 2, 3, 4, 5}) {
		t.Errorf("copied %v", numbers)
	}
}

// A transaction that began first draws its position later: a cursor on the
// position alone would lose its event.
func TestPositionsInverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group(w.node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond})
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
	w.await("the first", func() bool { return len(w.numbers()) >= 1 })
	if err := second.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	w.await("the second", func() bool { return len(w.numbers()) >= 2 })
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

// A reading that is never answered does not stop a processor for its term.
func TestReadingThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	database := &silent{Pool: w.pool}
	group, err := processor.NewGroup(w.node("a", tenure.Config{Lease: time.Second}), tenure.NamedRole("views"), database, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	config := processor.Config{Name: "counts", Log: w.store.Log(), Handle: w.fill, HandleTimeout: 100 * time.Millisecond, PollInterval: 10 * time.Millisecond}
	if err := group.Add(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- group.Run(ctx) }()
	w.await("the event", func() bool { return len(w.numbers()) == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !database.asked.Load() {
		t.Error("every reading was answered")
	}
}
