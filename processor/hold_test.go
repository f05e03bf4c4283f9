package processor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// poolOfOne is a pool with one connection, for the processor alone.
func (w *world) poolOfOne(configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	w.Helper()
	config := w.pool.Config()
	config.MaxConns = 1
	for _, c := range configure {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(w.Context(), config)
	w.must(err)
	w.Cleanup(pool.Close)
	return pool
}

// sinceAcquired keeps the statements since a pool last gave a connection, and all of them.
type sinceAcquired struct {
	mu              sync.Mutex
	statements, all []string
}

func (s *sinceAcquired) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements = nil
	return ctx
}

func (*sinceAcquired) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (s *sinceAcquired) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements, s.all = append(s.statements, data.SQL), append(s.all, data.SQL)
	return ctx
}

func (*sinceAcquired) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// texts returns the statements since the last acquisition, and all.
func (s *sinceAcquired) texts() (last, all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.statements, ";\n"), strings.Join(s.all, ";\n")
}

// A batch waits for its turn in a busy pool once: it is read on the connection whose
// transaction handles it.
func TestBatchAcquiresOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	w.settle() // an event that is not final is found by a later look, for all processors
	trace := &sinceAcquired{}
	statements := make(chan string, 1)
	w.groupIn(w.poolOfOne(func(c *pgxpool.Config) { c.ConnConfig.Tracer = trace }), w.Node("a", patient), processor.Config{
		Name: "counts",
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			last, _ := trace.texts()
			statements <- last
			return nil
		},
	})
	if got := <-statements; !strings.Contains(got, "ORDER BY log.transaction_id") || !strings.Contains(got, "BEGIN") {
		t.Errorf("the connection of the transaction had these statements:\n%s\nwant the read as well", got)
	}
}

// The connection of a batch is given back before another one is needed.
func TestPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var failed atomic.Bool
	trace := &sinceAcquired{}
	stop := w.groupIn(w.poolOfOne(func(c *pgxpool.Config) { c.ConnConfig.Tracer = trace }), w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 2, HandleTimeout: 5 * time.Minute, Retry: retry.FixedInterval{Interval: time.Millisecond},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if !failed.Swap(true) {
				return errors.New("the first attempt fails")
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("all events", func() bool { return len(w.numbers()) == 3 })
	w.Await("a look for more events after an empty read", func() bool {
		_, all := trace.texts()
		return strings.Contains(all, "\nSELECT true\n")
	})
	stop()
	w.wantNumbers(1, 2, 3)
}
