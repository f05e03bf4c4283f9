package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// lag returns the lag of a processor, zero if no leader has added it yet.
func (w *world) lag(name string) processor.Lag {
	w.Helper()
	if w.show(name).Name == "" {
		return processor.Lag{}
	}
	all, err := w.management().Lag(w.Context(), name)
	w.must(err)
	return all[0]
}

func (w *world) horizon() processor.Horizon {
	w.Helper()
	horizon, err := w.management().Horizon(w.Context())
	w.must(err)
	return horizon
}

// The failing event and those behind it are counted until they have been handled. The one
// before it has been.
func TestLagCountsWaitingEvents(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	var mended atomic.Bool
	w.append(1, 2, 3, 4)
	w.Exec(pgtest.SQL(w.backend, "UPDATE {events} SET occurred_at = occurred_at - interval '1 hour' WHERE data = '2'"))
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.flawed(&mended), PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Retry: retry.FixedInterval{Interval: 10 * time.Millisecond}, MaxAttempts: 1_000_000,
		Selection: processor.Selection{AnyTags: []string{"number"}},
	})
	w.Await("the lag", func() bool { return w.lag("counts").Behind == 3 })
	lag := w.lag("counts")
	if lag.OldestWait < time.Hour || lag.OldestWait > time.Hour+time.Minute || lag.Truncated || !lag.Led || lag.Name != "counts" {
		t.Errorf("the lag is %+v", lag)
	}
	mended.Store(true)
	w.Await("the end of the lag", func() bool { l := w.lag("counts"); return l.Behind == 0 && l.OldestWait == 0 })
	if got := w.numbers(); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("handled %v", got)
	}
}

// Counting is bounded and continues while a processor is paused.
func TestLagIsBoundedAndMeasuredWhilePaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond}
	stop := w.group(w.Node("a", tenure.Config{}), config)
	w.Await("the processor", func() bool { return w.show("counts").Led })
	w.must(w.management().Pause(t.Context(), "counts", "ann"))
	stop()
	w.Exec(pgtest.SQL(w.backend, "INSERT INTO {events} (type, data) SELECT 'counted', to_jsonb(n) FROM generate_series(1, 10001) n"))
	w.group(w.Node("b", tenure.Config{}), config)
	w.Await("the lag", func() bool { return w.lag("counts").Behind > 0 })
	if lag := w.lag("counts"); lag.Behind != 10_000 || !lag.Truncated || lag.OldestWait <= 0 {
		t.Errorf("the lag is %+v", lag)
	}
	if got := w.numbers(); len(got) != 0 {
		t.Errorf("handled %d while paused", len(got))
	}
}

// An idle leader records the lag, and then writes nothing while it polls: the next record is
// due at an interval; see TestMeasurementsAreDue.
func TestIdleLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var asked atomic.Int64
	database := &counting{Database: w.pool, with: "processor_lags", asked: &asked}
	config := processor.Config{Name: "counts", Handle: w.fill, PollInterval: time.Millisecond, MaxPollInterval: time.Millisecond}
	w.groupIn(database, w.Node("a", tenure.Config{}), config)
	w.Await("the event", func() bool { return len(w.numbers()) == 1 })
	poll := func() {
		t.Helper()
		begun := database.polls.Load()
		w.Await("polls", func() bool { return database.polls.Load() >= begun+50 })
	}
	w.Await("the record", func() bool { return asked.Load() > 0 && w.lag("counts").Behind == 0 })
	poll()
	before := asked.Load()
	poll()
	if n := asked.Load() - before; before == 0 || n > 0 {
		t.Errorf("%d statements on the lag at rest, after %d", n, before)
	}
}

// counting counts statements.
type counting struct {
	processor.Database
	with  string
	asked *atomic.Int64
	polls atomic.Int64
}

func (c *counting) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if strings.Contains(sql, c.with) {
		c.asked.Add(1)
	}
	return c.Database.Exec(ctx, sql, args...)
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.polls.Add(1)
	return c.Database.Query(ctx, sql, args...)
}

// A writing transaction anywhere in the cluster holds back the horizon: it is
// shown with its owner, the events wait, and none is lost.
func TestHorizonShowsTransactionOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "2"}})
	w := newWorldOn(t, server)
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond})
	w.append(1)
	w.Await("the first", func() bool { return len(w.numbers()) == 1 })

	elsewhere := server.Database(t) + "&application_name=report"
	culprit := pgtest.Conn(t, elsewhere)
	run := func(sql string) {
		t.Helper()
		pgtest.Exec(t, culprit, sql)
	}
	run("CREATE TABLE made (up integer)")
	run("BEGIN")
	run("INSERT INTO made VALUES (1)")
	w.append(2, 3)
	w.Await("the lag", func() bool { return w.lag("counts").BlockedByHorizon == 2 })
	if lag := w.lag("counts"); lag.Behind != 2 {
		t.Errorf("the lag is %+v", lag)
	}
	horizon := w.horizon()
	if len(horizon.Holders) == 0 {
		t.Fatal("no transaction holds the horizon")
	}
	holder := horizon.Holders[0]
	if holder.PID != int(culprit.PgConn().PID()) || holder.Database != culprit.Config().Database || holder.Application != "report" ||
		holder.User != "postgres" || holder.State != "idle in transaction" || !strings.Contains(holder.Query, "INSERT INTO made") ||
		holder.Transaction != horizon.Transaction || horizon.Age() <= 0 || holder.Prepared != "" {
		t.Errorf("the horizon %d is held by %+v", horizon.Transaction, holder)
	}
	if !strings.Contains(holder.String(), fmt.Sprint(holder.PID)) {
		t.Errorf("the holder reads %q", holder)
	}
	if s := w.show("counts"); s.Status != processor.Active || s.Errors != 0 || len(w.numbers()) != 1 {
		t.Errorf("while the horizon is held: %+v, handled %v", s, w.numbers())
	}

	// Without privileges on statistics, the process id is still visible.
	little := processor.NewAdmin(w.backend, pgtest.Pool(t, server.DSNFor(w.user(server), "postgres")))
	hidden, err := little.Horizon(t.Context())
	w.must(err)
	if len(hidden.Holders) == 0 || hidden.Holders[0].PID != holder.PID || hidden.Holders[0].Application != "report" ||
		hidden.Holders[0].Query != "" || !strings.Contains(hidden.Holders[0].String(), "pg_read_all_stats") {
		t.Errorf("without privileges, the holders are %+v", hidden.Holders)
	}

	// A prepared transaction has no session that could be ended.
	run("PREPARE TRANSACTION 'forgotten'")
	holder = w.horizon().Holders[0]
	if holder.Prepared != "forgotten" || holder.PID != 0 || holder.Database != culprit.Config().Database || holder.Age <= 0 {
		t.Errorf("the horizon is held by %+v", holder)
	}
	if len(w.numbers()) != 1 {
		t.Errorf("handled %v", w.numbers())
	}
	run("COMMIT PREPARED 'forgotten'")
	w.Await("the others", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3}) })
	w.Await("the end of the lag", func() bool { return w.lag("counts").Behind == 0 })
	for _, holder := range w.horizon().Holders {
		if holder.Database == culprit.Config().Database {
			t.Errorf("the horizon is held by %+v", holder)
		}
	}
}
