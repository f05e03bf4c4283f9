package processor_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// lagAgeBound is how old the figures of a processor with work may be: an interval, a tick
// and the time of the statements.
const lagAgeBound = 10 * time.Second

// blocking returns a handler or a publisher that blocks in its first call that hold accepts,
// until the function is called.
func (w *world) blocking(mode string, hold func(batch []processor.Event) bool) (config processor.Config, entered <-chan struct{}, release func()) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	wait := func(batch []processor.Event) {
		if hold(batch) && calls.Add(1) == 1 {
			close(begun)
			select {
			case <-goOn:
			case <-w.Context().Done(): // the test has failed
			}
		}
	}
	config = processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, HandleTimeout: time.Minute,
		Retry: retry.FixedInterval{Interval: time.Millisecond}, MaxAttempts: 1, Poison: processor.PoisonDeadLetter,
	}
	if mode == "publish" {
		config.Publish = func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			wait(batch)
			return len(batch), nil
		}
	} else {
		config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			wait(batch)
			return w.fill(ctx, tx, batch)
		}
	}
	return config, begun, func() { close(goOn) }
}

// The lag is measured whatever the loop does: events that arrive while a handler or a
// publisher runs are counted, and the figure says when that was.
func TestLagIsMeasuredWhileABatchRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"handle", "publish"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			config, entered, release := w.blocking(mode, func([]processor.Event) bool { return true })
			w.append(1)
			w.group(w.Node("a", tenure.Config{}), config)
			<-entered
			w.append(2, 3)
			w.Await("the lag of a running batch", func() bool { return w.lag("counts").Behind == 3 })
			if lag := w.lag("counts"); lag.Age > lagAgeBound || lag.OldestWait <= 0 {
				t.Errorf("while a batch runs, the lag is %+v", lag)
			}
			release()
			w.Await("the end of the lag", func() bool { return w.lag("counts").Behind == 0 })
		})
	}
}

// A batch above READ COMMITTED that is longer than the interval of measurements commits.
func TestMeasuringFailsNoBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool = pgtest.Pool(t, pgtest.Shared(t).DSN()+"&default_transaction_isolation=repeatable%20read")
	config, entered, release := w.blocking("handle", func([]processor.Event) bool { return true })
	w.append(1)
	w.groupIn(w.pool, w.Node("a", tenure.Config{}), config)
	<-entered
	measured := func() time.Time { return w.lag("counts").AsOf }
	w.Await("a measurement", func() bool { return w.lag("counts").Behind == 1 })
	first := measured()
	w.Await("another measurement", func() bool { return measured().After(first) })
	release()
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
	if s := w.show("counts"); s.LastError != "" {
		t.Errorf("a batch beside measurements failed: %s", s.LastError)
	}
}

// The time of the lag is that of the last measurement, also while the log cannot be read.
func TestLagOfUnreadableLogIsOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config, _, _ := w.blocking("handle", func([]processor.Event) bool { return false })
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), config)
	w.Await("the end of the lag", func() bool { return len(w.numbers()) == 1 && w.lag("counts").Behind == 0 })
	w.Exec("ALTER TABLE {events} RENAME COLUMN data TO contents")
	broken := postgrestest.Value[time.Time](w.Installation, "SELECT clock_timestamp()")
	w.Await("the error", func() bool { return w.show("counts").LastError != "" })
	if lag := w.lag("counts"); !lag.AsOf.Before(broken) {
		t.Errorf("the log could not be read since %v, and the lag was measured at %v", broken, lag.AsOf)
	}
}

// blockedReplay is a processor whose dead letter is being replayed.
func (w *world) blockedReplay(t *testing.T, mode string) (release func()) {
	var replaying atomic.Bool
	config, entered, release := w.blocking(mode, func([]processor.Event) bool { return replaying.Load() })
	w.deadLetters(t, config, 1)
	replaying.Store(true)
	_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	<-entered
	return release
}

// The lag is measured during a replay too.
func TestLagIsMeasuredDuringAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.blockedReplay(t, "publish")
	w.append(1001)
	w.Await("the lag during a replay", func() bool { return w.lag("counts").Behind == 1 })
	release()
	w.Await("the end of the lag", func() bool { return w.lag("counts").Behind == 0 })
}
