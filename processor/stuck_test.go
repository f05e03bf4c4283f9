package processor_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
)

// wantStuck waits until a processor's row says that it cannot work, and why. No attempt is
// counted, and no event is skipped.
func (w *world) wantStuck(t *testing.T, says string) {
	t.Helper()
	w.Await("the record that the processor cannot work", func() bool {
		return w.exists("counts") && w.show("counts").StuckErrors > 1
	})
	s := w.show("counts")
	if !strings.Contains(s.StuckError, says) || s.StuckSince.IsZero() || !strings.Contains(s.LastError, says) {
		t.Errorf("the processor cannot work, and its row says: %+v; want %q", s, says)
	}
	if s.Errors != 0 || s.DeadLetters != 0 || s.Status != processor.Active {
		t.Errorf("a processor that cannot work blames an event: %+v", s)
	}
}

// wantWorking waits until a processor's row says that it works.
func (w *world) wantWorking(t *testing.T, numbers ...int) {
	t.Helper()
	w.Await("the record that the processor works", func() bool { return w.show("counts").StuckError == "" })
	w.Await("the events", func() bool { return slices.Equal(w.numbers(), numbers) })
	if s := w.show("counts"); !s.StuckSince.IsZero() || s.StuckErrors != 0 {
		t.Errorf("after it works again: %+v", s)
	}
}

// A log that cannot be read is recorded in the processor's row, across leaders, and no longer
// when it can be read.
func TestUnreadableLogIsRecorded(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for name, c := range map[string]struct{ breaks, mends, says string }{
		"a renamed column": {"ALTER TABLE {events} RENAME COLUMN data TO contents", "ALTER TABLE {events} RENAME COLUMN contents TO data", "42703"},
		"a revoked SELECT": {"REVOKE SELECT ON {events} FROM USER", "GRANT SELECT ON {events} TO USER", "42501"},
		"a missing column": {"ALTER TABLE {events} DROP COLUMN causation_id", "ALTER TABLE {events} ADD COLUMN causation_id uuid", "42703"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			user := w.user(server)
			w.Exec("GRANT SELECT, INSERT ON " + w.filled + " TO " + user)
			pool := pgtest.Pool(t, server.DSNFor(user, "postgres"))
			config := processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond}
			w.append(1)
			stop := w.groupIn(pool, w.Node("a", tenure.Config{}), config)
			w.Await("the first event", func() bool { return len(w.numbers()) == 1 })
			w.append(2)
			w.Await("the second event", func() bool { return len(w.numbers()) == 2 })
			w.Exec(strings.ReplaceAll(c.breaks, "USER", user))
			w.wantStuck(t, c.says)
			stop()
			before := w.show("counts")
			since := before.StuckSince
			w.groupIn(pool, w.Node("b", tenure.Config{}), config)
			w.Await("errors of the next leader", func() bool { return w.show("counts").StuckErrors > before.StuckErrors })
			if s := w.show("counts"); !s.StuckSince.Equal(since) {
				t.Errorf("the next leader says that it cannot work since %v; want %v", s.StuckSince, since)
			}
			w.Exec(strings.ReplaceAll(c.mends, "USER", user))
			w.append(3)
			w.wantWorking(t, 1, 2, 3)
		})
	}
}

// A processor whose configuration cannot be used has a row that says so, and begins with its
// start when it can.
func TestUnusableConfigurationIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, quietServer(t))
	w.append(1)
	const ahead = 20_000 // more transactions than the test makes otherwise
	next := postgrestest.Value[int64](w.Installation, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
	config := w.counts(processor.Start{After: processor.Cursor{Transaction: uint64(next + ahead)}})
	config.PollInterval, config.MaxPollInterval = 100*time.Millisecond, 100*time.Millisecond
	w.group(w.Node("a", tenure.Config{}), config)
	w.wantStuck(t, "where no event can be yet")
	if s := w.show("counts"); s.Led || s.Role != "views" {
		t.Errorf("a processor that has not begun: %+v", s)
	}
	w.consume(ahead + 1)
	w.Await("the start", func() bool { return w.show("counts").Led })
	w.append(2)
	w.wantWorking(t, 2)
}

// A handler that does not return is recorded while it runs.
func TestHangingHandlerIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	config, entered, release := w.blocking("handle", func([]processor.Event) bool { return true })
	config.HandleTimeout = 10 * time.Millisecond
	handle := config.Handle
	config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		if err := handle(context.WithoutCancel(ctx), tx, batch); err != nil {
			return err
		}
		return context.Cause(ctx)
	}
	config.MaxAttempts = 1000
	w.group(w.Node("a", tenure.Config{}), config)
	<-entered
	w.wantStuck(t, "ignored the end of its context")
	release()
	w.wantWorking(t, 1)
}
