package processor_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// watched is a database with which the test does something around the statements of a
// processor.
type watched struct {
	processor.Database
	beforeBegin atomic.Pointer[func()] // is called before the next transaction
	beforeRead  atomic.Pointer[func()] // is called before the processor's row is read next
	reads       atomic.Int64           // of the processor's row
}

func (d *watched) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	if do := d.beforeBegin.Swap(nil); do != nil {
		(*do)()
	}
	return d.Database.BeginTx(ctx, options)
}

func (d *watched) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "role = $2 AND term = $3") {
		if do := d.beforeRead.Swap(nil); do != nil {
			(*do)()
		}
		d.reads.Add(1)
	}
	return d.Database.Query(ctx, sql, args...)
}

// A processor is paused after its leader has read that it is active, and before the batch
// is known to be in flight: the pause has returned, so the batch does not begin.
func TestPauseBeforeTheBatchBeginsIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	database := &watched{Database: w.pool}
	var calls atomic.Int64
	w.groupIn(database, w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			calls.Add(1)
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("the processor", func() bool { return w.exists("counts") })
	w.must(w.management().Pause(t.Context(), "counts", "ann"))
	paused := database.reads.Load()
	w.Await("the leader to rest, after the transaction in which it records that", func() bool { return database.reads.Load() > paused+1 })
	w.append(1)
	returned := make(chan struct{})
	pause := func() {
		defer close(returned)
		if err := w.management().Pause(t.Context(), "counts", "bob"); err != nil {
			t.Error(err)
		}
	}
	database.beforeBegin.Store(&pause)
	w.must(w.management().Resume(t.Context(), "counts", "ann"))
	<-returned
	before := database.reads.Load()
	w.Await("the next read", func() bool { return database.reads.Load() > before+1 })
	if n := calls.Load(); n != 0 {
		t.Errorf("%d batches began after the pause had returned", n)
	}
	w.must(w.management().Resume(t.Context(), "counts", "ann"))
	w.Await("the event", func() bool { return len(w.numbers()) == 1 })
}

// A failed processor is retried before its leader has read that it failed: a later pause
// waits for the batch in flight.
func TestPauseWaitsForTheBatchAfterARetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	database := &watched{Database: w.pool}
	retry := func() {
		if err := w.management().Retry(t.Context(), "counts", "bob"); err != nil {
			t.Error(err)
		}
	}
	entered, release := make(chan struct{}, 10), make(chan struct{}, 10)
	var calls atomic.Int64
	w.groupIn(database, w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, MaxAttempts: 1,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if calls.Add(1) == 1 {
				database.beforeRead.Store(&retry)
				return processor.ErrPoison
			}
			entered <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done(): // the test has failed
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.pauseInFlight("counts", entered, release, 1)
}
