package retention_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retention"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const patience = testkit.Patience

// world is an installation with a node.
type world struct {
	*postgrestest.Installation
	node *tenure.Node
}

func newWorld(t *testing.T) world {
	t.Helper()
	i := postgrestest.New(t, "schedules")
	return world{i, i.Node("a", tenure.Config{})}
}

func (s world) count(sql string) int { s.Helper(); return postgrestest.Value[int](s.Installation, sql) }

// Old rows become daily totals over several batches. Newer rows, unfinished runs and
// current terms stay.
//
// Set by hand: rows become old in 90 days.
func TestOldRowsAreRolledUp(t *testing.T) {
	t.Parallel()
	s := newWorld(t)
	s.Exec(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms)
SELECT 'billing', n, gen_random_uuid(), 'a', 1, ended - interval '1 minute', ended,
    CASE WHEN n % 5 = 0 THEN 'crashed' ELSE 'resigned' END, CASE WHEN n > 1 THEN n END
FROM (SELECT n, timestamptz '2026-01-01 12:00Z' + n * interval '1 hour' AS ended FROM generate_series(1, 250) n) terms`)
	s.Exec(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms)
VALUES ('billing', 1000, gen_random_uuid(), 'a', 1, now() - interval '1 minute', now(), 'resigned', 0)`)
	s.Exec(`
INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
OVERRIDING SYSTEM VALUE
SELECT timestamptz '2026-01-01 12:00Z', gen_random_uuid(), 'a', 1, unnest(ARRAY['active', 'draining', 'dead', 'left']), unnest(ARRAY['', 'active', 'draining', 'active'])`)
	s.Exec(`
INSERT INTO {runs} (schedule, scheduled_for, state, ticks, claimed_at, started_at, ended_at)
SELECT 'invoices', at, state, ticks, at, at, at + interval '2 seconds'
FROM unnest(ARRAY['succeeded', 'failed', 'abandoned', 'missed', 'running'], ARRAY[1, 1, 1, 7, 1]) WITH ORDINALITY AS r(state, ticks, n),
    LATERAL (SELECT timestamptz '2026-01-01 12:00Z' + n * interval '1 minute' AS at) times`)

	s.sample()

	// A trigger records the time limit of the compactor's transactions.
	s.Exec(`CREATE TABLE {schema}.bounds (setting text)`)
	s.Exec(`CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.bounds VALUES (current_setting('idle_in_transaction_session_timeout'));
    RETURN NULL;
END $$`)
	s.Exec(`CREATE TRIGGER note AFTER DELETE ON {history} FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note()`)
	compactor, err := retention.New(s.node, s.Pool, retention.Config{Keep: 30 * 24 * time.Hour, BatchSize: 40, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, compactor.Run)
	s.Await("no old rows are left", func() bool {
		return s.count(`SELECT count(*) FROM {history} WHERE ended_at < '2026-06-01'`) == 0 && s.count(`SELECT count(*) FROM {runs}`) <= 1 &&
			s.count(`SELECT count(*) FROM {samples}`) == 0 && s.count(`SELECT count(*) FROM {node_history} WHERE at < '2026-06-01'`) == 0
	})
	stop()
	for what, c := range map[string]struct {
		sql  string
		want int
	}{
		"terms":           {`SELECT sum(terms) FROM {term_days} WHERE role = 'billing'`, 250},
		"unclean ends":    {`SELECT sum(unclean) FROM {term_days}`, 50},
		"days":            {`SELECT count(*) FROM {term_days}`, 11},
		"minutes led":     {`SELECT sum(led_ms) / 60000 FROM {term_days}`, 250},
		"vacancies":       {`SELECT sum(vacant_ms) FROM {term_days}`, 250*251/2 - 1},
		"longest vacancy": {`SELECT max(longest_vacant_ms) FROM {term_days}`, 250},
		"terms of today":  {`SELECT count(*) FROM {history} WHERE term = 1000`, 1},
		"came":            {`SELECT came FROM {node_days}`, 1},
		"went":            {`SELECT went FROM {node_days}`, 1},
		"died":            {`SELECT died FROM {node_days}`, 1},
		"succeeded":       {`SELECT succeeded FROM {run_days}`, 1},
		"failed":          {`SELECT failed FROM {run_days}`, 2},
		"missed":          {`SELECT missed FROM {run_days}`, 7},
		"unbounded":       {`SELECT count(*) FROM {schema}.bounds WHERE setting = '0'`, 0},
		"batches":         {`SELECT least(count(*), 7) FROM {schema}.bounds`, 7},
		"running":         {`SELECT count(*) FROM {runs} WHERE state = 'running'`, 1},
	} {
		if got := s.count(c.sql); got != c.want {
			t.Errorf("%s: %d; want %d", what, got, c.want)
		}
	}
	s.checkDays()
}

// checkDays reads the totals, including those of rows that are not rolled up yet.
func (s world) checkDays() {
	s.Helper()
	read := func(query retention.Query) string {
		roles, err1 := retention.RoleDays(s.Context(), s.Backend, s.Pool, query)
		nodes, err2 := retention.NodeDays(s.Context(), s.Backend, s.Pool, query)
		schedules, err3 := retention.ScheduleDays(s.Context(), s.Backend, s.Pool, query)
		metrics, err4 := retention.MetricDays(s.Context(), s.Backend, s.Pool, query)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			s.Fatal(err)
		}
		return fmt.Sprintf("%v %v %v %v", roles, nodes, schedules, metrics)
	}
	day := func(n int) time.Time { return time.Date(2026, 1, n, 13, 0, 0, 0, time.UTC) }
	january := "2026-01-01 00:00:00 +0000 UTC"
	want := fmt.Sprintf("[{%[1]s billing 11 2 11m0s 65ms 11ms}] [{%[1]s 1 1 1}] [{%[1]s invoices 1 2 7 8s 2s}] "+
		"[{%[1]s t_gauge map[role:a] gauge 3 6 1 3} {%[1]s t_total map[] counter 3 5 0 0}]", january)
	if got := read(retention.Query{Since: day(1), Until: day(2)}); got != want {
		s.Errorf("got  %s\nwant %s", got, want)
	}
	if got := read(retention.Query{Until: day(1)}); got != "[] [] [] []" {
		s.Errorf("before: %s", got)
	}
	today, err := retention.RoleDays(s.Context(), s.Backend, s.Pool, retention.Query{Name: "billing", Limit: 1})
	if err != nil || len(today) != 1 || today[0].Terms != 1 || today[0].Led != time.Minute {
		s.Errorf("today: %v, %v", today, err)
	}
	one, err := retention.MetricDays(s.Context(), s.Backend, s.Pool, retention.Query{Name: "t_total"})
	if err != nil || len(one) != 1 {
		s.Errorf("one metric: %v, %v", one, err)
	}
}

// sample writes old samples of a gauge and a counter.
func (s world) sample() {
	s.Helper()
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "t_gauge", Help: "g"}, []string{"role"})
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "t_total", Help: "c"})
	registry.MustRegister(gauge, counter)
	for i := range 3 {
		gauge.WithLabelValues("a").Set(float64(i + 1))
		counter.Add(2.5 * float64(i%2*2))
		database := &notifyingDatabase{s.Pool, make(chan struct{})}
		reporter, err := metrics.NewReporter(s.node, database, registry, metrics.ReporterConfig{})
		if err != nil {
			s.Fatal(err)
		}
		stop := postgrestest.Run(s, reporter.Run)
		<-database.written
		stop()
		// Set by hand: samples become old in days.
		s.Exec(fmt.Sprintf(`UPDATE {samples} SET at = timestamptz '2026-01-01 12:00Z' + interval '%d minutes', first = %t WHERE at > '2026-06-01'`, i, i == 0))
	}
}

// notifyingDatabase closes written after a statement.
type notifyingDatabase struct {
	postgres.Database
	written chan struct{}
}

func (d *notifyingDatabase) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	defer close(d.written)
	return d.Database.Exec(ctx, sql, args...)
}

func TestNewChecksConfig(t *testing.T) {
	t.Parallel()
	s := newWorld(t)
	for name, config := range map[string]retention.Config{
		"kept for minutes": {Keep: time.Minute}, "no rows": {BatchSize: -1}, "back in time": {Interval: -1},
	} {
		if _, err := retention.New(s.node, s.Pool, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewCompactorRejectsOtherBackends(t *testing.T) {
	t.Parallel()
	other, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := retention.New(other, nil, retention.Config{}); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}

// Without schedules, samples and changes, the compactor creates the tables of daily
// totals only and rolls up what there is. Readers find the same before and after.
func TestCompactionNeedsOnlyTheCore(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	w := world{i, i.Node("a", tenure.Config{})}
	w.Exec(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
VALUES ('billing', 1, gen_random_uuid(), 'a', 1, '2026-01-01 12:00Z', '2026-01-01 13:00Z', 'resigned')`)
	read := func() {
		t.Helper()
		days, err := retention.RoleDays(t.Context(), w.Backend, w.Pool, retention.Query{})
		if err != nil || len(days) != 1 || days[0].Terms != 1 || days[0].Led != time.Hour {
			t.Errorf("%+v, %v; want one day with an hour", days, err)
		}
		runs, err := retention.ScheduleDays(t.Context(), w.Backend, w.Pool, retention.Query{})
		if err != nil || len(runs) > 0 {
			t.Errorf("%+v, %v; want no runs", runs, err)
		}
	}
	read()
	compactor, err := retention.New(w.node, w.Pool, retention.Config{Role: tenure.NamedRole("compactor of the core")})
	if err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, compactor.Run)
	w.Await("no old rows are left", func() bool { return w.count(`SELECT count(*) FROM {history}`) == 0 })
	stop()
	read()
	var features []string
	versions, err := w.Backend.SchemaVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if v.Version > 0 {
			features = append(features, v.Feature)
		}
	}
	if !slices.Equal(features, []string{"core", "rollups"}) {
		t.Errorf("features %v; want the core and rollups", features)
	}
}
