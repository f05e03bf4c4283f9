package processor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/processor"
)

// tally counts how often each numbered event was handled.
type tally struct {
	mu      sync.Mutex
	handled map[int]int
}

func (h *tally) handle(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
	numbers, err := numbersOf(batch)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, number := range numbers {
		h.handled[number]++
	}
	return err
}

func numbersOf(batch []processor.Event) (numbers []int, err error) {
	for _, event := range batch {
		var number int
		if _, err = fmt.Sscan(string(event.Data), &number); err != nil {
			return numbers, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// has reports whether all events were handled.
func (h *tally) has(numbers []int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, number := range numbers {
		if h.handled[number] == 0 {
			return false
		}
	}
	return true
}

// Two groups that never poll handle every event of random transactions: short and long
// ones, with savepoints, rolled back, prepared, and of both ways to insert. After each
// round nothing is committed until all events are handled, so that no later notification
// can make up for a missing one.
func TestEventsOfRandomTransactionsAreHandledWithoutPolls(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "20"}})
	w := newWorldOn(t, server)
	tallies := []*tally{{handled: map[int]int{}}, {handled: map[int]int{}}}
	for i, h := range tallies {
		group, err := processor.NewGroup(w.Node(fmt.Sprint("node ", i), tenure.Config{}), tenure.NamedRole(fmt.Sprint("group ", i)), w.pool, processor.GroupConfig{})
		w.must(err)
		w.must(group.Add(processor.Config{
			Name: fmt.Sprint("counts ", i), Log: w.store.Log(), Handle: h.handle, PollInterval: time.Hour, MaxPollInterval: time.Hour,
		}))
		postgrestest.Run(w, group.Run)
	}
	w.awaitReaders(len(tallies))
	seed := rand.Uint64()
	rounds := 15
	if !testing.Short() {
		rounds = 60
	}
	random := &writes{world: w, random: rand.New(rand.NewPCG(seed, 0))}
	for round := range rounds {
		committed := random.round(1 + random.roll(8))
		for i, h := range tallies {
			w.Await(fmt.Sprintf("group %d handles the events of round %d (seed %d)", i, round, seed), func() bool { return h.has(committed) })
		}
		<-time.After(time.Duration(random.roll(150)) * time.Millisecond) // the readers are awake, falling asleep or asleep
	}
}

// awaitReaders waits until readers attend the doorbell.
func (w *world) awaitReaders(readers int) {
	w.Helper()
	channel := schema.Of(w.backend).Channel(processor.Topic)
	w.Await("readers", func() bool {
		return postgrestest.Value[int](w.Installation, `
			SELECT count(*) FROM pg_locks, generate_series(1, $2) slot
			WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ExclusiveLock'
				AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1, -slot)`, channel, doorbell.Slots) == readers
	})
}

// writes makes random transactions with numbered events.
type writes struct {
	*world

	mu     sync.Mutex
	random *rand.Rand
	number int
}

func (w *writes) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// round runs writers at the same time and returns the numbers that they committed.
func (w *writes) round(writers int) (committed []int) {
	w.Helper()
	var (
		writing sync.WaitGroup
		mu      sync.Mutex
	)
	for range writers {
		writing.Go(func() {
			conn, err := w.pool.Acquire(w.Context())
			if err != nil {
				w.Error(err)
				return
			}
			defer conn.Release()
			for range 1 + w.roll(4) {
				numbers, err := w.transact(conn.Conn())
				if err != nil {
					w.Error(err)
				}
				mu.Lock()
				committed = append(committed, numbers...)
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	return committed
}

// transact runs a transaction and returns the numbers that it committed.
func (w *writes) transact(conn *pgx.Conn) (numbers []int, err error) {
	ctx := w.Context()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // it does nothing after the end
	kept := []int{}                         // how many numbers each savepoint keeps
	for range 1 + w.roll(5) {
		switch w.roll(8) {
		case 0:
			kept = append(kept, len(numbers))
			_, err = tx.Exec(ctx, fmt.Sprint("SAVEPOINT s", len(kept)))
		case 1:
			if len(kept) > 0 {
				numbers = numbers[:kept[len(kept)-1]]
				_, err = tx.Exec(ctx, fmt.Sprint("ROLLBACK TO s", len(kept)))
			}
		case 2:
			_, err = tx.Exec(ctx, "SELECT pg_sleep($1)", float64(w.roll(30))/1000)
		case 3:
			_, err = tx.Exec(ctx, "SELECT pg_sleep($1)", float64(w.roll(20)/19)/2)
		default:
			number := w.next()
			numbers = append(numbers, number)
			err = w.insert(ctx, tx, number)
		}
		if err != nil {
			return nil, err
		}
	}
	switch w.roll(10) {
	case 0:
		return nil, tx.Rollback(ctx)
	case 1:
		id := fmt.Sprint("'", w.Schema, w.next(), "'")
		if _, err = tx.Exec(ctx, "PREPARE TRANSACTION "+id); err != nil {
			return nil, nil // it has notified, and is rolled back
		}
		_, err = conn.Exec(ctx, "SELECT pg_sleep($1)", float64(w.roll(200))/1000)
		if err == nil {
			_, err = conn.Exec(ctx, "COMMIT PREPARED "+id)
		}
		return numbers, err
	}
	return numbers, tx.Commit(ctx)
}

func (w *writes) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	return w.number
}

func (w *writes) insert(ctx context.Context, tx pgx.Tx, number int) error {
	if w.roll(2) == 0 {
		return w.store.Append(ctx, tx, eventstore.NewEvent{Type: "counted", Data: number})
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{w.Schema, "tenure_events"}.Sanitize()+" (type, data) VALUES ('counted', to_jsonb($1::bigint))", number)
	return err
}

// Two commits that follow each other quickly wake a processor up. Then commits do not
// notify it. An open transaction that saw it awake keeps it so for the test.
func TestProcessorThatIsAwakeIsNotRung(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(0)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, PollInterval: time.Hour, MaxPollInterval: time.Hour,
	})
	w.Await("the first", func() bool { return len(w.numbers()) == 1 })
	channel := schema.Of(w.backend).Channel(processor.Topic)
	conn, appended := w.Server.Conn(t), 0
	w.Await("awake", func() bool {
		for range 3 {
			appended++
			w.append(appended)
		}
		tx, err := conn.Begin(t.Context())
		w.must(err)
		w.must(w.store.Append(t.Context(), tx, newEvent(appended+1)))
		shared := postgrestest.Value[int](w.Installation, `
			SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND pid = $1`, conn.PgConn().PID())
		if shared < doorbell.Slots {
			w.must(tx.Rollback(t.Context()))
			return false
		}
		appended++
		return true
	})
	rings := w.countRings(channel, func() {
		for range 50 {
			appended++
			w.append(appended)
		}
	})
	if rings > 0 {
		t.Errorf("%d notifications while the processor was awake; want none", rings)
	}
	_, err := conn.Exec(t.Context(), "COMMIT")
	w.must(err)
	w.Await("all events", func() bool { return len(w.numbers()) == appended+1 })
}

// countRings counts the notifications of a channel while a function runs.
func (w *world) countRings(channel string, during func()) (rings int) {
	w.Helper()
	conn := w.Server.Conn(w)
	ctx := w.Context()
	_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
	w.must(err)
	during()
	_, err = conn.Exec(ctx, "SELECT pg_notify($1, 'last')", channel)
	w.must(err)
	for {
		notification, err := conn.WaitForNotification(ctx)
		w.must(err)
		if notification.Payload == "last" {
			return rings
		}
		rings++
	}
}
