package processor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// bench is the world of a benchmark, on a separate server that flushes its commits.
type bench struct {
	*world
	*testing.B
	node *tenure.Node
	role int
}

const benchBatch = 1000

func newBench(b *testing.B, events int) *bench {
	b.Helper()
	server := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"shared_buffers": "256MB", "max_wal_size": "4GB"}})
	backend, err := postgres.New(server.DSN(), postgres.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(backend.Close)
	if err := backend.Migrate(b.Context(), "processors", "events"); err != nil {
		b.Fatal(err)
	}
	w := &bench{B: b, world: &world{pool: server.Pool(b), backend: backend, store: eventstore.New(backend, eventstore.Config{}), filled: "filled"}}
	if w.node, err = tenure.Open(b.Context(), backend, tenure.Config{Name: "bench"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.node.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	w.run(`CREATE TABLE filled (transaction_id xid8, position bigint, type text, tags text[], data jsonb, occurred_at timestamptz)`)
	w.run(`
		INSERT INTO tenure_events (type, tags, data, correlation_id)
		SELECT
			'order.' || n % 10,
			ARRAY['order=' || n / 10, 'customer=' || n % 1000],
			jsonb_build_object('number', n, 'note', repeat('x', 100)),
			gen_random_uuid()
		FROM generate_series(1, $1) n`, events)
	w.run("VACUUM ANALYZE tenure_events")
	return w
}

func (w *bench) run(sql string, args ...any) {
	w.B.Helper()
	if _, err := w.pool.Exec(w.B.Context(), sql, args...); err != nil {
		w.B.Fatal(err)
	}
}

// process runs a processor until the channel is closed.
func (w *bench) process(config processor.Config, done <-chan struct{}) {
	w.B.Helper()
	w.role++
	config.Name, config.Log = fmt.Sprintf("bench%d", w.role), w.store.Log()
	group, err := processor.NewGroup(w.node, tenure.NamedRole(config.Name), w.pool, processor.GroupConfig{})
	if err == nil {
		err = group.Add(config)
	}
	if err != nil {
		w.B.Fatal(err)
	}
	stop := postgrestest.Run(w.B, group.Run)
	<-done
	stop()
}

// stopwatch measures from the first batch to the last event.
type stopwatch struct {
	events, wanted int
	begun          time.Time
	took           time.Duration
	done           chan struct{}
}

func newStopwatch(wanted int) *stopwatch {
	return &stopwatch{wanted: wanted, done: make(chan struct{})}
}

func (s *stopwatch) start() {
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
}

func (s *stopwatch) handled(events int) {
	s.events += events
	if s.events == s.wanted {
		s.took = time.Since(s.begun)
		close(s.done)
	}
}

func benchEvents(fallback int) int {
	if n, err := strconv.Atoi(os.Getenv("TENURE_TEST_EVENTS")); err == nil {
		return n
	}
	return fallback
}

// rates are those of several rounds; the compared programs take turns, so that both
// run under the same conditions.
type rates []float64

func (r *rates) add(events int, took time.Duration) { *r = append(*r, float64(events)/took.Seconds()) }

func (r rates) median() float64 {
	sorted := slices.Sorted(slices.Values(r))
	return sorted[len(sorted)/2]
}

// BenchmarkView compares a view that copies events, in batches, with a loop that only
// writes the same rows in the same batches by INSERT … SELECT. The handler writes the
// events of its batch, or it receives only cursors and makes the server copy from the
// first to the last. For comparison, two plain loops without Tenure, a fence or a cursor
// read each batch ahead on another connection, as a processor does, and write it: one
// decodes the events with pgx, the other one passes the bytes of COPY on and decodes
// nothing, which is the limit of what a client can do.
//
//	go test ./processor -run '^$' -bench View -benchtime 7x
func BenchmarkView(b *testing.B) {
	b.Run("handler writes", func(b *testing.B) { benchmarkView(b, false, copyEvents) })
	b.Run("server copies", func(b *testing.B) { benchmarkView(b, true, copyInServer) })
}

func benchmarkView(b *testing.B, placesOnly bool, handler func(context.Context, pgx.Tx, []processor.Event) error) {
	b.Helper()
	events := benchEvents(100_000)
	w := newBench(b, events)
	bounds := w.bounds()
	var view, bare, relay, ahead rates
	for b.Loop() {
		w.run("TRUNCATE filled")
		watch := newStopwatch(events)
		w.process(processor.Config{BatchSize: benchBatch, CursorsOnly: placesOnly, Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			watch.start()
			err := handler(ctx, tx, batch)
			watch.handled(len(batch)) // but for one commit
			return err
		}}, watch.done)
		view.add(events, watch.took)
		w.run("TRUNCATE filled")
		begun := time.Now()
		w.insertSelect(events)
		bare.add(events, time.Since(begun))
		w.run("TRUNCATE filled")
		begun = time.Now()
		w.relay(bounds)
		relay.add(events, time.Since(begun))
		w.run("TRUNCATE filled")
		begun = time.Now()
		w.copyAhead(events)
		ahead.add(events, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(relay.median(), "relay-events/s")
	b.ReportMetric(relay.median()/bare.median(), "relay-ratio")
	b.ReportMetric(ahead.median(), "ahead-events/s")
	b.ReportMetric(ahead.median()/bare.median(), "ahead-ratio")
	b.ReportMetric(view.median(), "view-events/s")
	b.ReportMetric(bare.median(), "bare-events/s")
	b.ReportMetric(view.median()/bare.median(), "ratio")
}

// copyEvents writes a batch unchanged.
func copyEvents(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"filled"}, []string{"transaction_id", "position", "type", "tags", "data", "occurred_at"},
		pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) {
			e := &batch[i]
			return []any{e.Transaction, e.Position, e.Type, pgtype.FlatArray[string](e.Tags), []byte(e.Data), e.OccurredAt}, nil
		}))
	return err
}

// copyInServer has the server write a batch.
func copyInServer(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
	first, last := batch[0].Cursor, batch[len(batch)-1].Cursor
	_, err := tx.Exec(ctx, `
		INSERT INTO filled
		SELECT transaction_id, position, type, tags, data, occurred_at
		FROM tenure_events
		WHERE (transaction_id, position) BETWEEN ($1::text::xid8, $2::bigint) AND ($3::text::xid8, $4::bigint)`,
		fmt.Sprint(first.Transaction), first.Position, fmt.Sprint(last.Transaction), last.Position)
	return err
}

// insertSelect copies the events in the server.
func (w *bench) insertSelect(events int) {
	var cursor processor.Cursor
	for copied := 0; copied < events; {
		var transaction string
		var n int
		err := w.pool.QueryRow(w.B.Context(), `
			WITH copied AS (
				INSERT INTO filled
				SELECT transaction_id, position, type, tags, data, occurred_at
				FROM tenure_events
				WHERE (transaction_id, position) > ($1::text::xid8, $2)
				ORDER BY transaction_id, position
				LIMIT $3
				RETURNING transaction_id, position
			)
			SELECT transaction_id::text, position, count(*) OVER () FROM copied ORDER BY transaction_id DESC, position DESC LIMIT 1`,
			fmt.Sprint(cursor.Transaction), cursor.Position, benchBatch).Scan(&transaction, &cursor.Position, &n)
		if err == nil {
			cursor.Transaction, err = strconv.ParseUint(transaction, 10, 64)
		}
		if err != nil {
			w.B.Fatal(err)
		}
		copied += n
	}
}

// copyAhead reads the batches on one connection, at most two ahead, and writes them on
// another one.
func (w *bench) copyAhead(events int) {
	ctx, cancel := context.WithCancel(w.B.Context())
	batches := make(chan []processor.Event, 1)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		defer close(batches)
		var cursor processor.Cursor
		for read := 0; read < events; {
			batch, err := readBatch(ctx, w.pool, cursor)
			if err != nil {
				w.B.Error(err)
				return
			}
			read, cursor = read+len(batch), batch[len(batch)-1].Cursor
			select {
			case batches <- batch:
			case <-ctx.Done():
				return
			}
		}
	})
	for batch := range batches {
		if err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return copyEvents(ctx, tx, batch) }); err != nil {
			w.B.Fatal(err)
		}
	}
}

// bounds returns the last cursor of each batch.
func (w *bench) bounds() []processor.Cursor {
	rows, err := w.pool.Query(w.B.Context(), `
		SELECT transaction_id::text::bigint, position
		FROM (SELECT *, row_number() OVER (ORDER BY transaction_id, position) AS place, count(*) OVER () AS events FROM tenure_events) e
		WHERE place % $1 = 0 OR place = events
		ORDER BY place`, benchBatch)
	if err != nil {
		w.B.Fatal(err)
	}
	bounds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[processor.Cursor])
	if err != nil {
		w.B.Fatal(err)
	}
	return bounds
}

// relay copies the batches as bytes, at most two ahead.
func (w *bench) relay(bounds []processor.Cursor) {
	ctx, cancel := context.WithCancel(w.B.Context())
	batches := make(chan *bytes.Buffer, 1)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		defer close(batches)
		var after processor.Cursor
		for _, last := range bounds {
			batch := new(bytes.Buffer)
			sql := fmt.Sprintf(`
				COPY (
					SELECT transaction_id, position, type, tags, data, occurred_at
					FROM tenure_events
					WHERE (transaction_id, position) > ('%d'::xid8, %d) AND (transaction_id, position) <= ('%d'::xid8, %d)
					ORDER BY transaction_id, position
				) TO STDOUT (FORMAT binary)`, after.Transaction, after.Position, last.Transaction, last.Position)
			err := w.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
				_, err := conn.Conn().PgConn().CopyTo(ctx, batch, sql)
				return err
			})
			if err != nil {
				w.B.Error(err)
				return
			}
			after = last
			select {
			case batches <- batch:
			case <-ctx.Done():
				return
			}
		}
	})
	for batch := range batches {
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			_, err := tx.Conn().PgConn().CopyFrom(ctx, batch, "COPY filled FROM STDIN (FORMAT binary)")
			return err
		})
		if err != nil {
			w.B.Fatal(err)
		}
	}
}

// readBatch reads the events after a cursor.
func readBatch(ctx context.Context, from *pgxpool.Pool, after processor.Cursor) ([]processor.Event, error) {
	rows, err := from.Query(ctx, `
		SELECT transaction_id, position, type, tags, data, occurred_at, correlation_id, causation_id
		FROM tenure_events
		WHERE (transaction_id, position) > ($1::text::xid8, $2)
		ORDER BY transaction_id, position
		LIMIT $3`, fmt.Sprint(after.Transaction), after.Position, benchBatch)
	if err != nil {
		return nil, err
	}
	return scanEvents(rows, benchBatch)
}

// BenchmarkPublish compares a publisher that does nothing with reading the same
// rows into the same events by a cursor of the server, in the same batches.
//
//	go test ./processor -run '^$' -bench Publish -benchtime 7x
func BenchmarkPublish(b *testing.B) {
	events := benchEvents(300_000)
	w := newBench(b, events)
	var published, read rates
	for b.Loop() {
		watch := newStopwatch(events)
		w.process(processor.Config{BatchSize: benchBatch, Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			watch.start()
			watch.handled(len(batch))
			return len(batch), nil
		}}, watch.done)
		published.add(events-benchBatch, watch.took) // the first batch was read before
		begun := time.Now()
		w.readCursor(events)
		read.add(events, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(published.median(), "published-events/s")
	b.ReportMetric(read.median(), "cursor-events/s")
	b.ReportMetric(published.median()/read.median(), "ratio")
}

func (w *bench) readCursor(events int) {
	ctx := w.B.Context()
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			DECLARE plain NO SCROLL CURSOR FOR
			SELECT transaction_id, position, type, tags, data, occurred_at, correlation_id, causation_id
			FROM tenure_events
			ORDER BY transaction_id, position`)
		for n := 0; err == nil && n < events; n += benchBatch {
			err = fetch(ctx, tx)
		}
		return err
	})
	if err != nil {
		w.B.Fatal(err)
	}
}

func fetch(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, fmt.Sprintf("FETCH %d FROM plain", benchBatch))
	if err != nil {
		return err
	}
	_, err = scanEvents(rows, benchBatch)
	return err
}

// scanEvents reads at most so many events.
func scanEvents(rows pgx.Rows, most int) ([]processor.Event, error) {
	defer rows.Close()
	batch := make([]processor.Event, 0, most)
	for rows.Next() {
		batch = append(batch, processor.Event{})
		e := &batch[len(batch)-1]
		var correlation, causation *[16]byte
		data := (*[]byte)(&e.Data) // a document is not parsed
		err := rows.Scan(&e.Transaction, &e.Position, &e.Type, &e.Tags, data, &e.OccurredAt, &correlation, &causation)
		if err != nil {
			return nil, err
		}
	}
	return batch, rows.Err()
}
