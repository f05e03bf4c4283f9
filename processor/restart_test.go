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
	"github.com/exactly-one/tenure/retry"
)

// TestFailedProcessorRunsAgain: a processor that PoisonStop has stopped runs again when an
// operator rewinds or rebuilds it.
func TestFailedProcessorRunsAgain(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(ctx context.Context, m *processor.Admin) error{
		"rewind": func(ctx context.Context, m *processor.Admin) error {
			return m.Rewind(ctx, "counts", processor.Cursor{}, "ann")
		},
		"rebuild": func(ctx context.Context, m *processor.Admin) error { return m.Rebuild(ctx, "counts", "ann") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(1, 2)
			var mended atomic.Bool
			w.group(w.Node("a", tenure.Config{}), processor.Config{
				Name: "counts", Handle: w.flawed(&mended), MaxAttempts: 1,
				Retry: retry.FixedInterval{Interval: time.Millisecond}, PollInterval: 10 * time.Millisecond,
				Reset: func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "TRUNCATE "+w.filled)
					return err
				},
			})
			w.Await("the failure", func() bool { return w.exists("counts") && w.show("counts").Status == processor.Failed })
			mended.Store(true)
			w.must(restart(t.Context(), w.management()))
			w.Await("the events", func() bool { n := w.numbers(); return slices.Contains(n, 1) && slices.Contains(n, 2) })
			if s := w.show("counts"); s.Status != processor.Active {
				t.Errorf("afterwards: %+v", s)
			}
		})
	}
}
