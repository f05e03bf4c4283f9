package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// writers append events, each to separate streams.
type writers struct {
	group     sync.WaitGroup
	over      chan struct{} // closed when all have ended
	mu        sync.Mutex
	committed int
}

// startWriters has 16 writers commit so many events.
func startWriters(t *testing.T, c *cluster, wanted int) *writers {
	const many = 16
	w := &writers{over: make(chan struct{})}
	backend, err := postgres.New(c.dsn, c.db)
	if err != nil {
		t.Fatal(err)
	}
	store := eventstore.New(backend, eventstore.Config{})
	pool := pgtest.Pool(t, fmt.Sprintf("%s&pool_max_conns=%d", c.dsn, many))
	for i := range many {
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		w.group.Go(func() { w.write(t, pool, store, i, (wanted+many-1)/many, random) })
	}
	go func() {
		w.group.Wait()
		backend.Close()
		close(w.over)
	}()
	return w
}

// write commits so many events, numbered in each stream.
func (w *writers) write(t *testing.T, pool *pgxpool.Pool, store *eventstore.Store, writer, wanted int, random *rand.Rand) {
	const streams, transactions = 4, 250
	var numbers [streams]int
	for wanted > 0 {
		next := numbers
		size := min(wanted, 1+random.IntN(max(2*wanted/transactions, 10)))
		tx, err := pool.Begin(t.Context())
		for appended := 0; err == nil && appended < size; {
			part := min(size-appended, 1+random.IntN(size))
			events := make([]eventstore.NewEvent, part)
			for i := range events {
				stream := random.IntN(streams)
				next[stream]++
				events[i] = eventstore.NewEvent{
					Type: "counted", Tags: []string{fmt.Sprintf("stream=%d-%d", writer, stream)}, Data: next[stream],
				}
			}
			err = store.Append(t.Context(), tx, events...)
			appended += part
			<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		}
		if err == nil && random.IntN(8) == 0 {
			err = tx.Rollback(t.Context())
			next, size = numbers, 0
		} else if err == nil {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			if t.Context().Err() == nil {
				t.Errorf("writer %d: %v", writer, err)
			}
			return
		}
		numbers = next
		wanted -= size
		w.mu.Lock()
		w.committed += size
		w.mu.Unlock()
	}
}

// progress returns how many events were committed so far, and whether these are
// all.
func (w *writers) progress() (committed int, over bool) {
	select {
	case <-w.over:
		over = true
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed, over
}

func (w *writers) wait() int {
	<-w.over
	committed, _ := w.progress()
	return committed
}
