package processor_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// user makes a database user with the privileges that WorkGrants prints, dropped
// with the test.
func (w *world) user(server *pgtest.Server) (name string) {
	w.Helper()
	name = strings.ToLower(w.Schema) + "_u"
	w.Exec("CREATE ROLE " + name + " LOGIN")
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		conn, err := pgx.Connect(ctx, server.DSN())
		if err != nil {
			w.Error(err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP OWNED BY "+name+"; DROP ROLE "+name); err != nil {
			w.Error(err)
		}
	})
	grants, err := w.backend.WorkGrants(name, "processors", "events")
	if err != nil {
		w.Fatal(err)
	}
	w.Exec(grants)
	return name
}

// A leader and an operator need only the privileges that WorkGrants prints,
// in addition to those on the handler's output.
func TestWorkGrantsSuffice(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	w := newWorld(t)
	name := w.user(server)
	w.Exec("GRANT SELECT, INSERT, TRUNCATE ON " + w.filled + " TO " + name)
	w.pool = pgtest.Pool(t, server.DSNFor(name, "postgres"))

	var mended atomic.Bool
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.flawed(&mended), PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Retry: retry.FixedInterval{Interval: 10 * time.Millisecond}, MaxAttempts: 3,
	})
	w.append(1, 2, 3)
	w.Await("the failure", func() bool { return w.show("counts").Status == processor.Failed })
	w.Await("the lag", func() bool { return w.lag("counts").Behind > 0 })
	m := w.management()
	if _, err := m.Skip(t.Context(), "counts", processor.Cursor{}, "ann"); err != nil {
		t.Fatalf("skipping with the granted privileges: %v", err)
	}
	mended.Store(true)
	w.Await("the third", func() bool { return slices.Equal(w.numbers(), []int{1, 3}) })
	_, err := m.Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the second", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 2}) })
	w.must(m.Pause(t.Context(), "counts", "ann"))
	w.must(m.Rewind(t.Context(), "counts", processor.Cursor{}, "ann"))
	w.must(m.Resume(t.Context(), "counts", "ann"))
	w.Await("all again", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 2, 1, 2, 3}) })
	w.horizon()
}
