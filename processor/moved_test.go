package processor_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// held is a handler that waits, in the first attempt at an event, until the test
// has done something.
func (w *world) held(number string, do func()) (
	handle func(context.Context, pgx.Tx, []processor.Event) error, attempts *atomic.Int64,
) {
	attempts = new(atomic.Int64)
	return func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		if string(batch[0].Data) == number && attempts.Add(1) == 1 {
			do()
		}
		return w.fill(ctx, tx, batch)
	}, attempts
}

// The cursor moves past an event while the event is handled, for example
// because an earlier attempt was committed after all: this attempt does not
// count.
func TestBatchBehindTheCursorDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2) // in one transaction, so that they differ only in the position
	handle, _ := w.held("2", func() {
		at := w.place(2)
		w.Exec("UPDATE "+pgx.Identifier{w.Schema, "tenure_processors"}.Sanitize()+" SET cursor_position = $1", at.Position)
	})
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", BatchSize: 1, PollInterval: 10 * time.Millisecond, Handle: handle,
	})
	w.Await("the second event is behind", func() bool { return w.exists("counts") && w.show("counts").Cursor == w.place(2) })
	w.append(3)
	w.Await("the third event", func() bool { return slices.Contains(w.numbers(), 3) })
	if got := w.numbers(); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("handled %v, want 1 and 3: the second event was applied before", got)
	}
}

// A rewind to the cursor where the batch in flight began counts as a rewind:
// the batch does not count.
func TestRewindToStartOfBatchDiscardsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	handle, attempts := w.held("1", func() { w.must(w.management().Rewind(w.Context(), "counts", processor.Cursor{}, "ann")) })
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", PollInterval: 10 * time.Millisecond, Handle: handle})
	w.Await("the event", func() bool { return len(w.numbers()) > 0 })
	if got := w.numbers(); !slices.Equal(got, []int{1}) || attempts.Load() != 2 {
		t.Errorf("handled %v in %d attempts, want the event once, in the second attempt", got, attempts.Load())
	}
}

// An operator deletes the row of a processor that runs. It is a new processor then, and
// does not stand still until the next term.
func TestProcessorWithDeletedRowBeginsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", PollInterval: 10 * time.Millisecond, Handle: w.fill})
	w.Await("the event", func() bool { return len(w.numbers()) > 0 })
	w.Exec("DELETE FROM {processors} WHERE name = 'counts'")
	w.append(2)
	w.Await("the event after the deletion", func() bool { return slices.Contains(w.numbers(), 2) })
	if got := w.numbers(); !slices.Equal(got, []int{1, 1, 2}) {
		t.Errorf("handled %v, want 1 again and then 2", got)
	}
	if !w.exists("counts") || w.show("counts").Cursor != w.place(2) {
		t.Error("the processor has no row with the cursor of the last event")
	}
}

// An operator restores the row of a processor that runs from a backup of another database
// cluster. The processor stops visibly.
func TestRestoredCursorOfTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", PollInterval: 10 * time.Millisecond, Handle: w.fill})
	w.Await("the event", func() bool { return w.exists("counts") && w.show("counts").Cursor == w.place(1) })
	w.Exec("UPDATE {processors} SET cursor_transaction = '4000000000' WHERE name = 'counts'")
	w.append(2)
	w.awaitRefusal("counts")
}
