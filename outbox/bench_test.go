package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// nullPublisher acknowledges all messages immediately.
type nullPublisher struct {
	taken atomic.Int64
	all   int64
	done  chan struct{} // closed after the last message
}

func (*nullPublisher) Name() string { return "null" }

func (n *nullPublisher) Publish(_ context.Context, messages []outbox.Message) (int, error) {
	if n.taken.Add(int64(len(messages))) == n.all {
		close(n.done)
	}
	return len(messages), nil
}

// BenchmarkNullPublisher compares the outbox with reading the same rows with a plain
// cursor.
func BenchmarkNullPublisher(b *testing.B) {
	const events, batch = 500_000, 1000
	w := newWorld(b)
	_, err := w.Pool.Exec(b.Context(), pgtest.SQL(w.Backend, `
		INSERT INTO {events} (type, tags, data)
		SELECT 'placed', ARRAY['order=' || n], jsonb_build_object('order', n, 'amount', 7)
		FROM generate_series(1, $1) n`), events)
	if err != nil {
		b.Fatal(err)
	}
	w.Exec("VACUUM ANALYZE {events}")
	var outboxed, read time.Duration
	for b.Loop() {
		begun := time.Now()
		w.read(batch)
		read += time.Since(begun)

		n := &nullPublisher{all: events, done: make(chan struct{})}
		begun = time.Now()
		stop := w.run(outbox.Topic{Name: b.Name() + time.Now().String(), Publishers: []outbox.Publisher{n}, Processing: processor.Config{BatchSize: batch}})
		<-n.done
		outboxed += time.Since(begun)
		stop()
	}
	rounds := float64(b.N)
	b.ReportMetric(events*rounds/outboxed.Seconds(), "events/s")
	b.ReportMetric(events*rounds/read.Seconds(), "cursor-events/s")
	b.ReportMetric(100*read.Seconds()/outboxed.Seconds(), "%-of-cursor")
}

// read reads the log with a plain cursor.
func (w *world) read(batch int) {
	w.Helper()
	tx, err := w.Pool.Begin(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // it has read only
	pgtest.Exec(w, tx, pgtest.SQL(w.Backend, `
		DECLARE log CURSOR FOR
		SELECT transaction_id::text, position, type, tags, data, occurred_at, correlation_id, causation_id
		FROM {events}
		ORDER BY transaction_id, position`))
	for count := batch; count == batch; {
		rows, err := tx.Query(w.Context(), "FETCH 1000 FROM log")
		if err != nil {
			w.Fatal(err)
		}
		count = 0
		for rows.Next() {
			count++
		}
		if rows.Err() != nil {
			w.Fatal(rows.Err())
		}
	}
}
