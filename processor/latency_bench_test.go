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
// commit sends a notification.
//
//	go test ./processor -run '^$' -bench Latency -benchtime 3000x
func BenchmarkLatency(b *testing.B) {
	for _, test := range []struct {
		writers int
		pause   time.Duration
	}{{1, 20 * time.Millisecond}, {16, 100 * time.Millisecond}, {16, 0}} {
		b.Run(fmt.Sprintf("%d writers, every %v", test.writers, test.pause/2), func(b *testing.B) {
			w := newBench(b, 0)
			m := &latencies{wanted: b.N, ready: make(chan struct{}), done: make(chan struct{}), committed: map[int]time.Time{}, handled: map[int]time.Time{}}
			var group sync.WaitGroup
			group.Go(func() {
				w.process(processor.Config{Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
					return m.handle(time.Now(), batch)
				}}, m.done)
			})
			m.write(b, w, 0) // the processor is at work then
			<-m.ready
			begun := time.Now()
			next := make(chan int)
			for range test.writers {
				group.Go(func() {
					for number := range next {
						m.write(b, w, number)
						<-time.After(time.Duration(rand.Int64N(int64(test.pause) + 1)))
					}
				})
			}
			for number := range b.N {
				next <- number + 1
			}
			close(next)
			group.Wait()
			elapsed := time.Since(begun)
			all := m.all()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(b.N)/elapsed.Seconds(), "commits/s")
		})
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
