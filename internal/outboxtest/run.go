package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// patience is how long a test waits for what must happen sometime.
const patience = 30 * time.Second

// Options say where the publisher of [Main] sends to and what has come there.
type Options struct {
	Target     string            // for [Open]
	Deliveries func() []Delivery // all so far, in the order of arrival
	// Keyed says that order is kept among events with the same tag "stream"
	// only, whose value is the key of a delivery.
	Keyed bool
}

// rounds is how many leaders meet with a fault; TENURE_TEST_OUTBOX_ROUNDS sets
// another number.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("TENURE_TEST_OUTBOX_ROUNDS")); err == nil {
		return n
	}
	return 3
}

// Run appends events from several writers while leaders are stopped, killed, and
// cut off from the database in the middle of their batches, and checks that
// everything arrived as promised.
func Run(t *testing.T, options Options) Result {
	t.Helper()
	r := newRunner(t, options)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for writer := range 4 {
		writing.Go(func() { r.write(ctx, writer) })
	}
	stopWriting := func() {
		cancel()
		writing.Wait()
	}
	defer stopWriting()
	interrupted := 0
	// A quick batch ends before the fault meets it, so more leaders may be needed.
	for round := 0; round < rounds() || interrupted == 0 && round < rounds()+20; round++ {
		switch round % 3 {
		case 0:
			r.stop(&interrupted)
		case 1:
			r.cut()
		default:
			r.kill(&interrupted)
		}
	}
	stopWriting()
	log := r.log()
	r.awaitAll(log)
	for _, p := range r.children {
		_ = p.EndInput() // it may have been killed
	}
	for _, p := range r.children {
		<-p.Ended()
	}
	result, faults := Check(log, options.Deliveries())
	t.Logf("%d events in %d terms, %d leaders interrupted in a batch, %d deliveries repeated, %d stale",
		len(log), result.Terms, interrupted, result.Repeated, result.Stale)
	for _, fault := range faults[:min(len(faults), 20)] {
		t.Error(fault)
	}
	if interrupted == 0 {
		t.Error("no leader was interrupted in the middle of a batch")
	}
	return result
}

// runner is a run of [Run].
type runner struct {
	*testing.T
	options  Options
	order    order
	pool     *pgxpool.Pool
	backend  *postgres.Backend
	store    *eventstore.Store
	news     chan *process
	children []*process
	term     int64 // the last one that was seen
}

func newRunner(t *testing.T, options Options) *runner {
	t.Helper()
	server := pgtest.Shared(t)
	r := &runner{
		T: t, options: options, pool: server.Pool(t), news: make(chan *process),
		order: order{DSN: server.DSN(), Schema: server.Schema(t), Target: options.Target},
	}
	var err error
	if r.backend, err = postgres.New(r.order.DSN, postgres.Config{Schema: r.order.Schema}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.backend.Close)
	if err := r.backend.Migrate(t.Context(), "processors", "events"); err != nil {
		t.Fatal(err)
	}
	r.store = eventstore.New(r.backend, eventstore.Config{})
	r.add()
	r.add()
	return r
}

func (r *runner) add() {
	r.Helper()
	o := r.order
	o.Name = fmt.Sprint("child", len(r.children))
	r.children = append(r.children, spawn(r.T, o, r.news))
}

var errChange = errors.New("the writer has changed its mind")

// write appends events until the context ends, in transactions that take their
// time and may be rolled back. None is cut off in its commit, which could be done
// after the log was read.
func (r *runner) write(ctx context.Context, writer int) {
	for ctx.Err() == nil {
		err := pgx.BeginFunc(r.Context(), r.pool, func(tx pgx.Tx) error {
			events := make([]eventstore.NewEvent, 1+rand.IntN(6))
			for i := range events {
				events[i] = eventstore.NewEvent{Type: "ordered", Tags: []string{fmt.Sprint("stream=", writer)}, Data: i}
			}
			if err := r.store.Append(r.Context(), tx, events...); err != nil {
				return err
			}
			wakeup.Sleep(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
			if rand.IntN(10) == 0 {
				return errChange
			}
			return nil
		})
		if err != nil && !errors.Is(err, errChange) {
			r.Errorf("writer %d: %v", writer, err)
			return
		}
	}
}

// publishing waits until a child begins a batch in a term from one on.
func (r *runner) publishing(from int64) *process {
	r.Helper()
	limit := time.After(patience)
	for {
		select {
		case p := <-r.news:
			if told := p.reported(); told.Kind == publishing && told.Term >= from {
				r.term = told.Term
				return p
			}
		case <-limit:
			r.Fatalf("no process has published in term %d or later", from)
		}
	}
}

// stop stops the leader at the beginning of a batch until another has taken over,
// and counts it if that was before the batch's end.
func (r *runner) stop(interrupted *int) {
	r.Helper()
	leader := r.publishing(r.term)
	fallen := r.term
	leader.signal(sandbox.PauseSignal)
	r.publishing(fallen + 1)
	if told := leader.reported(); told.Kind == publishing && told.Term == fallen {
		*interrupted++
	}
	leader.signal(sandbox.ResumeSignal)
}

// kill kills the leader within a batch, puts another candidate in its place, and
// counts it if the batch had not ended.
func (r *runner) kill(interrupted *int) {
	r.Helper()
	leader := r.publishing(r.term)
	wakeup.Sleep(r.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
	leader.Kill()
	if leader.reported().Kind == publishing {
		*interrupted++
	}
	r.add()
	r.publishing(r.term + 1)
}

// cut cuts the leader off from the database for a moment, except for its session,
// so that its term continues.
func (r *runner) cut() {
	r.Helper()
	const statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
	leader := r.publishing(r.term)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lease / 5); time.Now().Before(end); <-tick.C {
		if _, err := r.pool.Exec(r.Context(), statement, poolName(r.order.Schema, leader.Name)); err != nil {
			r.Fatal(err)
		}
	}
	r.publishing(r.term)
}

// log is what was committed, in its order.
func (r *runner) log() []Entry {
	r.Helper()
	rows, err := r.pool.Query(r.Context(), pgtest.SQL(r.backend, `
		SELECT transaction_id::text::numeric::bigint, position, coalesce(substr(tags[1], length('stream=') + 1), '')
		FROM {events}
		ORDER BY transaction_id, position`))
	if err != nil {
		r.Fatal(err)
	}
	log, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (entry Entry, err error) {
		var transaction int64
		err = row.Scan(&transaction, &entry.Position.Position, &entry.Key)
		entry.Position.Transaction = uint64(transaction)
		if !r.options.Keyed {
			entry.Key = ""
		}
		return entry, err
	})
	if err != nil {
		r.Fatal(err)
	}
	return log
}

// awaitAll waits until every event has arrived, for as long as more and more do.
func (r *runner) awaitAll(log []Entry) {
	r.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	most := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		arrived := map[processor.Cursor]bool{}
		for _, d := range r.options.Deliveries() {
			arrived[d.Position.Cursor] = true
		}
		if !slices.ContainsFunc(log, func(entry Entry) bool { return !arrived[entry.Position] }) {
			return
		}
		if len(arrived) > most {
			most, deadline = len(arrived), time.Now().Add(patience)
		}
	}
	r.Error("some events have not arrived")
}
