package processor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/processor"
)

// BenchmarkLatency measures the time from a commit to the call of the handler, with
// writers that each commit one event, wait for up to a given time, and repeat. Each
// commit sends a notification. For comparison it measures a reader without Tenure that
// polls without a pause.
//
//	go test ./processor -run '^$' -bench Latency -benchtime 3000x
func BenchmarkLatency(b *testing.B) {
	for _, test := range []struct {
		writers int
		pause   time.Duration
	}{{1, 20 * time.Millisecond}, {16, 100 * time.Millisecond}, {16, 0}} {
		b.Run(fmt.Sprintf("%d writers, every %v", test.writers, test.pause/2), func(b *testing.B) {
			w := newBench(b, 0)
			m, commits := w.latency(test.writers, test.pause, func(m *latencies) {
				w.process(processor.Config{Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
					return m.handle(time.Now(), batch)
				}}, m.done)
			})
			w.run("TRUNCATE tenure_events")
			bare, _ := w.latency(test.writers, test.pause, w.pollEvents)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(m.percentile(50), "p50-ms")
			b.ReportMetric(m.percentile(99), "p99-ms")
			b.ReportMetric(bare.percentile(50), "bare-p50-ms")
			b.ReportMetric(bare.percentile(99), "bare-p99-ms")
			b.ReportMetric(commits, "commits/s")
		})
	}
}

// latency runs the writers beside a reader until it has handled all events, and returns
// the commits per second as well.
func (w *bench) latency(writers int, pause time.Duration, read func(*latencies)) (*latencies, float64) {
	m := &latencies{wanted: w.B.N, ready: make(chan struct{}), done: make(chan struct{}), committed: map[int]time.Time{}, handled: map[int]time.Time{}}
	var group sync.WaitGroup
	group.Go(func() { read(m) })
	m.write(w.B, w, 0) // the reader is at work then
	<-m.ready
	begun := time.Now()
	next := make(chan int)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for number := range next {
				m.write(w.B, w, number)
				<-time.After(time.Duration(rand.Int64N(int64(pause) + 1)))
			}
		})
	}
	for number := range w.B.N {
		next <- number + 1
	}
	close(next)
	writing.Wait()
	elapsed := time.Since(begun)
	group.Wait()
	return m, float64(w.B.N) / elapsed.Seconds()
}

// pollEvents reads the events in order without a pause, and stores its position with each
// batch: the least that a handler of ordered events does.
func (w *bench) pollEvents(m *latencies) {
	ctx := w.B.Context()
	w.run("CREATE TABLE IF NOT EXISTS polled (position bigint)")
	var cursor processor.Cursor
	for {
		select {
		case <-m.done:
			return
		default:
		}
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `
				SELECT transaction_id, position, type, tags, data, occurred_at, correlation_id, causation_id
				FROM tenure_events
				WHERE (transaction_id, position) > ($1::text::xid8, $2) AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
				ORDER BY transaction_id, position
				LIMIT $3`, fmt.Sprint(cursor.Transaction), cursor.Position, benchBatch)
			if err != nil {
				return err
			}
			batch, err := scanEvents(rows, 0)
			if err != nil || len(batch) == 0 {
				return err
			}
			cursor = batch[len(batch)-1].Cursor
			if err := m.handle(time.Now(), batch); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "INSERT INTO polled VALUES ($1)", cursor.Position)
			return err
		})
		if err != nil {
			w.B.Error(err)
			return
		}
	}
}

// latencies are the times at which numbered events were committed and handled.
type latencies struct {
	wanted      int
	ready, done chan struct{} // the first was handled; all were

	mu                 sync.Mutex
	committed, handled map[int]time.Time
}

// write commits an event. The commit is taken to have happened when its answer
// is here.
func (m *latencies) write(b *testing.B, w *bench, number int) {
	b.Helper()
	if err := w.store.Append(b.Context(), w.pool, eventstore.NewEvent{Type: "counted", Data: number}); err != nil {
		b.Error(err)
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.committed[number] = now
}

func (m *latencies) handle(now time.Time, batch []processor.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range batch {
		number, err := strconv.Atoi(string(event.Data))
		if err != nil {
			return err
		}
		m.handled[number] = now
		if number == 0 {
			close(m.ready)
		}
	}
	if len(m.handled) == m.wanted+1 {
		close(m.done)
	}
	return nil
}

// percentile returns a percentile in milliseconds.
func (m *latencies) percentile(percent int) float64 {
	all := m.all()
	return float64(all[len(all)*percent/100].Microseconds()) / 1000
}

// all returns the latencies in their order. Where the handler was called before
// the writer had its answer, it is nothing.
func (m *latencies) all() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	for number := 1; number <= m.wanted; number++ {
		all = append(all, max(0, m.handled[number].Sub(m.committed[number])))
	}
	slices.Sort(all)
	return all
}
