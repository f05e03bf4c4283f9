package processor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// A pool of one connection suffices, although the next batch is read while one
// is handled.
func TestProcessorWorksOnOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.pool.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	var want []int
	for number := range 50 {
		want = append(want, number)
	}
	w.append(want...)
	w.groupIn(pool, w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, BatchSize: 5})
	w.Await("all events", func() bool { return len(w.numbers()) >= len(want) })
	if got := w.numbers(); !slices.Equal(got, want) {
		t.Errorf("handled %v", got)
	}
}

// If an operator moves the cursor, the events that were read ahead are
// discarded, and the batch in flight does not count.
func TestRewindDiscardsReadAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3, 4, 5, 6)
	handling, goOn := make(chan struct{}), make(chan struct{})
	calls := 0
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 2,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			calls++
			if calls == 2 {
				close(handling)
				<-goOn
			}
			return w.fill(ctx, tx, batch)
		},
	})
	<-handling
	w.must(w.management().Rewind(t.Context(), "counts", processor.Cursor{}, "ann"))
	close(goOn)
	want := []int{1, 2, 1, 2, 3, 4, 5, 6}
	w.Await("all events", func() bool { return len(w.numbers()) >= len(want) })
	if got := w.numbers(); !slices.Equal(got, want) {
		t.Errorf("handled %v", got)
	}
}
