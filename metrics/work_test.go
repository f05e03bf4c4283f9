package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// fill adds processors and schedules as their leaders would.
func (w *world) fill() {
	w.Helper()
	if err := w.Backend.Migrate(w.Context(), "processors", "schedules", "rollups"); err != nil {
		w.Fatal(err)
	}
	// Set by hand: package retention imports this one.
	w.Exec(`INSERT INTO {rollup_states} (kind, keep_ms, interval_ms, errors) VALUES ('runs', 1000, 1000, 3)`)
	w.Exec(`INSERT INTO {processors} (name, kind, role, status, processed, errors)
		VALUES ('mail', 'processor', 'mails', 'active', 7, 0), ('index', 'view', 'views', 'failed', 9, 4)`)
	w.Exec(`UPDATE {processors} SET panics = 5, stuck_error = 'no log', stuck_since = clock_timestamp() - interval '2 minutes' WHERE name = 'mail'`)
	w.Exec(`INSERT INTO {processor_lags} (processor, behind, behind_more, held, waiting_since, measured_at)
		VALUES ('mail', 3, false, 2, clock_timestamp() - interval '1 minute', clock_timestamp() - interval '10 seconds')`)
	w.Exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
		VALUES ('index', '1', 1, '', 1, 1), ('index', '1', 2, '', 1, 1)`)
	w.Exec(`INSERT INTO {schedules} (name, role, expression, timezone, failures, panics)
		VALUES ('invoice', 'scheduler', '0 3 1 1 *', 'UTC', 5, 2)`)
	w.Exec(`INSERT INTO {schedules} (name, role, expression, timezone, paused) VALUES ('report', 'scheduler', '@hourly', 'UTC', true)`)
	w.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state, ticks, started_at, ended_at)
		VALUES ('invoice', '2025-01-01T03:00:00Z', 'missed', 3, NULL, NULL),
			('invoice', '2026-01-01T03:00:00Z', 'succeeded', 1, clock_timestamp(), clock_timestamp()),
			('invoice', '2027-01-01T03:00:00Z', 'waiting', 1, NULL, NULL)`)
}

// A recorded outage is in the metrics with its length and its end; one that ended before
// the first reading is not counted.
func TestWorkCollectsOutages(t *testing.T) {
	w := newWorld(t)
	w.Exec(`INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous, outage_since)
		VALUES ('2026-11-25T03:00:38Z', gen_random_uuid(), 'a', 2, 'active', 'dead', '2026-11-25T03:00:00Z')`)
	work := metrics.NewWork(w.Backend, w.Pool, metrics.Config{}, metrics.WorkConfig{})
	reading(t, work, "tenure")
	got := scrape(t, work)
	got.want(t, 0, "tenure_cluster_outages_total")
	got.want(t, 38, "tenure_cluster_outage_seconds")
	got.want(t, float64(time.Date(2026, 11, 25, 3, 0, 38, 0, time.UTC).Unix()), "tenure_cluster_outage_ended_timestamp_seconds")
	got.want(t, 0, "tenure_cluster_outage_roles")
}

// The silence before a term is in the metrics apart from the vacancy, also if many terms
// begin together. Terms before the first reading are not.
func TestWorkCollectsSilences(t *testing.T) {
	w := newWorld(t)
	begin := func(terms int, silent, vacant float64) {
		w.Exec(`INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms, silent_ms)
			SELECT 'role-' || n, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, gen_random_uuid(), 'a', 1, clock_timestamp(), clock_timestamp() + interval '1 ms', 'crashed', $2, $3
			FROM generate_series(1, $1::int) n`, terms, vacant, silent)
		w.Exec(`INSERT INTO {terms} (role, term, node_id, node_name, incarnation, acquired_at, lock_key)
			VALUES ('open', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, gen_random_uuid(), 'a', 1, clock_timestamp(), 1)
			ON CONFLICT (role) DO UPDATE SET term = excluded.term, acquired_at = excluded.acquired_at`)
	}
	begin(1, 5000, 3)
	work := metrics.NewWork(w.Backend, w.Pool, metrics.Config{}, metrics.WorkConfig{Interval: time.Second})
	reading(t, work, "tenure")
	silences := func() (count uint64, sum float64) {
		family := scrape(t, work)["tenure_cluster_silence_seconds"]
		if family == nil {
			return 0, -1
		}
		histogram := family.GetMetric()[0].GetHistogram()
		return histogram.GetSampleCount(), histogram.GetSampleSum()
	}
	if count, sum := silences(); count != 0 || sum != 0 {
		t.Errorf("after the first reading: %d terms, %v s", count, sum)
	}
	const many = 1_500
	begin(many, 9400, 17)
	testkit.AwaitNil(t, time.Minute, func() error {
		count, sum := silences()
		if count == many && math.Abs(sum-many*9.4) < 0.001 {
			return nil
		}
		err := fmt.Errorf("%d terms with %v s; want %d with 9.4 s each", count, sum, many)
		if count > many {
			t.Fatal(err)
		}
		return err
	})
}

// countingDatabase is a database that counts queries, and can make them fail.
type countingDatabase struct {
	postgres.Database
	mu      sync.Mutex
	queries int
	refuse  error
	done    chan struct{} // after each reading, if it fails, and with room for one
}

func (d *countingDatabase) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	d.mu.Lock()
	d.queries++
	refuse := d.refuse
	d.mu.Unlock()
	if refuse != nil {
		select {
		case d.done <- struct{}{}:
		default:
		}
		// Rows that fail, as pgx returns them.
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		return d.Database.Query(canceled, sql, args...)
	}
	return d.Database.Query(ctx, sql, args...)
}

func (d *countingDatabase) set(refuse error) (queries int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = refuse
	return d.queries
}

// reading runs a collector until the test ends, and returns when it has read
// once.
func reading(t *testing.T, work *metrics.Work, prefix string) {
	t.Helper()
	postgrestest.Run(t, work.Run)
	testkit.AwaitWithin(t, time.Minute, "a reading", func() bool {
		_, found := scrape(t, work).series(prefix + "_work_read_timestamp_seconds")
		return found
	})
}

func TestWorkCollectsProcessorsAndSchedules(t *testing.T) {
	w := newWorld(t)
	w.fill()
	database := &countingDatabase{Database: w.Pool}
	work := metrics.NewWork(w.Backend, database, metrics.Config{}, metrics.WorkConfig{})
	if got := scrape(t, work); len(got) != 0 {
		t.Errorf("before the first reading: %v", got)
	}
	reading(t, work, "tenure")
	before := database.set(nil)
	var got scraped
	for range 100 {
		got = scrape(t, work)
	}
	if after := database.set(nil); after != before {
		t.Errorf("100 scrapes asked the database %d times", after-before)
	}

	got.want(t, 1, "tenure_processor_status", "processor", "mail", "status", "active")
	got.want(t, 0, "tenure_processor_status", "processor", "mail", "status", "failed")
	got.want(t, 1, "tenure_processor_status", "processor", "index", "status", "failed")
	got.want(t, 0, "tenure_processor_led", "processor", "mail")
	got.want(t, 7, "tenure_processor_events_total", "processor", "mail")
	got.want(t, 3, "tenure_processor_behind_events", "processor", "mail")
	got.want(t, 2, "tenure_processor_held_events", "processor", "mail")
	got.want(t, 5, "tenure_processor_panics_total", "processor", "mail")
	if lag, _ := got.series("tenure_processor_lag_seconds", "processor", "mail"); lag < 60 || lag > 120 {
		t.Errorf("the lag is %v s", lag)
	}
	got.want(t, 0, "tenure_processor_lag_seconds", "processor", "index")
	if age, _ := got.series("tenure_processor_lag_age_seconds", "processor", "mail"); age < 10 || age > 70 {
		t.Errorf("the age of the lag is %v s", age)
	}
	if _, found := got.series("tenure_processor_lag_age_seconds", "processor", "index"); found {
		t.Error("a lag that no leader has measured has an age")
	}
	if stuck, _ := got.series("tenure_processor_stuck_seconds", "processor", "mail"); stuck < 120 || stuck > 180 {
		t.Errorf("the processor has been stuck for %v s", stuck)
	}
	got.want(t, 0, "tenure_processor_stuck_seconds", "processor", "index")
	got.want(t, 4, "tenure_processor_consecutive_errors", "processor", "index")
	got.want(t, 2, "tenure_processor_dead_letters", "processor", "index")

	got.want(t, 3, "tenure_retention_consecutive_errors", "rows", "runs")
	got.want(t, 0, "tenure_cron_loaded", "schedule", "invoice")
	got.want(t, 0, "tenure_cron_paused", "schedule", "invoice")
	got.want(t, 1, "tenure_cron_paused", "schedule", "report")
	got.want(t, 1, "tenure_cron_runs", "schedule", "invoice", "state", string(cron.Waiting))
	got.want(t, 0, "tenure_cron_runs", "schedule", "invoice", "state", string(cron.Running))
	got.want(t, 5, "tenure_cron_failures_total", "schedule", "invoice")
	got.want(t, 2, "tenure_cron_panics_total", "schedule", "invoice")
	got.want(t, 3, "tenure_cron_missed_ticks", "schedule", "invoice")
	began := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	got.want(t, float64(began.Unix()), "tenure_cron_last_run_timestamp_seconds", "schedule", "invoice")
	got.want(t, 1, "tenure_cron_last_run_succeeded", "schedule", "invoice")
	next, _ := got.series("tenure_cron_next_run_timestamp_seconds", "schedule", "invoice")
	if at := time.Unix(int64(next), 0).UTC(); at.Before(time.Now()) || at.Month() != time.January || at.Hour() != 3 {
		t.Errorf("the next run is at %v", at)
	}
	got.want(t, 0, "tenure_cron_next_run_timestamp_seconds", "schedule", "report")
	got.want(t, 0, "tenure_cron_last_run_succeeded", "schedule", "report")
}

func TestManyProcessorsShareASeries(t *testing.T) {
	w := newWorld(t)
	w.fill()
	work := metrics.NewWork(w.Backend, w.Pool, metrics.Config{MaxRoles: 1}, metrics.WorkConfig{})
	reading(t, work, "tenure")
	got := scrape(t, work)
	got.want(t, 1, "tenure_processor_status", "processor", "", "status", "active")
	got.want(t, 1, "tenure_processor_status", "processor", "", "status", "failed")
	got.want(t, 16, "tenure_processor_events_total", "processor", "")
	got.want(t, 3, "tenure_processor_behind_events", "processor", "")
	got.want(t, 4, "tenure_processor_consecutive_errors", "processor", "")
	got.want(t, 2, "tenure_processor_dead_letters", "processor", "")
	got.want(t, 1, "tenure_cron_paused", "schedule", "")
	got.want(t, 1, "tenure_cron_runs", "schedule", "", "state", string(cron.Waiting))
	got.want(t, 5, "tenure_cron_failures_total", "schedule", "")
	got.want(t, 3, "tenure_cron_missed_ticks", "schedule", "")
	got.want(t, 2, "tenure_processor_held_events", "processor", "")
	if _, found := got.series("tenure_cron_failures_total", "schedule", "invoice"); found {
		t.Error("a schedule has its own series")
	}
}

// An open transaction holds the horizon of all processors.
func TestHorizonAgeIsCollected(t *testing.T) {
	w := newWorld(t)
	w.fill()
	work := metrics.NewWork(w.Backend, w.Pool, metrics.Config{}, metrics.WorkConfig{})
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	pgtest.Exec(t, tx, "SELECT pg_current_xact_id()")
	reading(t, work, "tenure")
	if age, found := scrape(t, work).series("tenure_processor_horizon_age_seconds"); !found || age <= 0 {
		t.Errorf("the horizon is %v s old (found: %v)", age, found)
	}
}

// After a failed read, the previous values are served with their age.
func TestWorkKeepsLastReading(t *testing.T) {
	w := newWorld(t)
	w.fill()
	var logged syncBuffer
	database := &countingDatabase{Database: w.Pool, done: make(chan struct{}, 1)}
	work := metrics.NewWork(w.Backend, database, metrics.Config{}, metrics.WorkConfig{
		Interval: time.Second, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	reading(t, work, "tenure")
	database.set(errors.New("out of order"))
	<-database.done
	before, _ := scrape(t, work).series("tenure_work_read_timestamp_seconds")
	<-database.done
	got := scrape(t, work)
	got.want(t, before, "tenure_work_read_timestamp_seconds")
	got.want(t, 7, "tenure_processor_events_total", "processor", "mail")
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, logged.String())
	}
}

// syncBuffer is a buffer that several goroutines may use.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
