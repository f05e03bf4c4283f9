package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/tenuretest"
)

// world is an installation with nodes that report.
type world struct {
	*postgrestest.Installation
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{postgrestest.New(t, "samples")}
}

// node opens a node that the test closes.
func (w *world) node(name string) *tenure.Node {
	w.Helper()
	return w.Node(name, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
}

// read reads all samples since a position.
func (w *world) read(after metrics.Position) ([]metrics.Snapshot, metrics.Position) {
	w.Helper()
	var all []metrics.Snapshot
	next, err := metrics.ReadSamples(w.Context(), w.Backend, w.Pool, after, func(s metrics.Snapshot) error {
		all = append(all, s)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return all, next
}

// written is a database that executes a limited number of statements, however long
// they take, and reports each.
type written struct {
	postgres.Database
	left    int
	results chan error
}

func (d *written) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if d.left == 0 {
		<-ctx.Done()
		return pgconn.CommandTag{}, ctx.Err()
	}
	d.left--
	tag, err := d.Database.Exec(context.WithoutCancel(ctx), sql, args...)
	d.results <- err
	return tag, err
}

// report runs a reporter until it has tried to write so many samples, and
// returns the result of the last one.
func report(t testing.TB, samples int, node *tenure.Node, database postgres.Database, gatherer prometheus.Gatherer) error {
	t.Helper()
	watched := &written{database, samples, make(chan error)}
	reporter, err := metrics.NewReporter(node, watched, gatherer, metrics.ReporterConfig{Interval: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := reporter.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	for range samples {
		err = <-watched.results
	}
	cancel()
	running.Wait()
	return err
}

// everything is a registry with a metric of each type.
func everything() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "t_gauge", Help: "Left out."}, []string{"role"})
	gauge.WithLabelValues("a\n\"b\"").Set(-1.5)
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "t_total", Help: "Left out."})
	counter.Add(3)
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "t_seconds", Help: "Left out.", Buckets: []float64{0.5, 2}})
	histogram.Observe(0.25)
	histogram.Observe(1)
	histogram.Observe(4)
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "t_summary", Help: "Left out."})
	summary.Observe(7)
	registry.MustRegister(gauge, counter, histogram, summary)
	return registry
}

func text(s metrics.Series) string { return fmt.Sprint(s.Name, s.Labels, s.Value, s.Type) }

func TestReadSamplesReturnsAllNodes(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	if err := report(t, 2, node, w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	got, position := w.read("")
	if len(got) != 2 || !got[0].At.Before(got[1].At) {
		t.Fatalf("read %v", got)
	}
	sample := got[1]
	if sample.Node != node.ID() || sample.NodeName != "a" || sample.Problem != nil || time.Since(sample.At).Abs() > time.Minute {
		t.Errorf("the sample is %v", sample)
	}
	want := []metrics.Series{
		{Name: "t_gauge", Labels: map[string]string{"role": "a\n\"b\""}, Value: -1.5, Type: metrics.GaugeSeries},
		{Name: "t_seconds_bucket", Labels: map[string]string{"le": "0.5"}, Value: 1, Type: metrics.HistogramSeries},
		{Name: "t_seconds_bucket", Labels: map[string]string{"le": "2"}, Value: 2, Type: metrics.HistogramSeries},
		{Name: "t_seconds_bucket", Labels: map[string]string{"le": "+Inf"}, Value: 3, Type: metrics.HistogramSeries},
		{Name: "t_seconds_sum", Value: 5.25, Type: metrics.HistogramSeries},
		{Name: "t_seconds_count", Value: 3, Type: metrics.HistogramSeries},
		{Name: "t_summary_sum", Value: 7, Type: metrics.CounterSeries},
		{Name: "t_summary_count", Value: 1, Type: metrics.CounterSeries},
		{Name: "t_total", Value: 3, Type: metrics.CounterSeries},
	}
	if len(sample.Series) != len(want) {
		t.Fatalf("%d series: %v", len(sample.Series), sample.Series)
	}
	for i, s := range sample.Series {
		if text(s) != text(want[i]) || !maps.Equal(s.Labels, want[i].Labels) {
			t.Errorf("series %d: got %v, want %v", i, s, want[i])
		}
	}
	if again, next := w.read(position); len(again) != 0 || next == "" {
		t.Errorf("from %q: got %v, and the position %q", position, again, next)
	}
}

// A transaction with a lower number can commit later, and an unrelated one can
// take forever: every sample is returned once, without delay.
func TestReadSamplesReturnsEachSampleOnce(t *testing.T) {
	w := newWorld(t)
	slow, quick := w.node("slow"), w.node("quick")
	connections := [2]*pgx.Conn{}
	for i := range connections {
		connections[i] = pgtest.Conn(t, pgtest.Shared(t).DSN())
	}
	begin := func(conn *pgx.Conn, sql string) {
		t.Helper()
		pgtest.Exec(t, conn, sql)
	}
	begin(connections[0], "BEGIN; SELECT pg_current_xact_id()") // of another program
	begin(connections[1], "BEGIN")
	if err := report(t, 1, slow, connections[1], everything()); err != nil {
		t.Fatal(err)
	}
	var position metrics.Position
	expect := func(names ...string) {
		t.Helper()
		var got []metrics.Snapshot
		got, position = w.read(position)
		var found []string
		for _, s := range got {
			found = append(found, s.NodeName)
		}
		if fmt.Sprint(found) != fmt.Sprint(names) {
			t.Errorf("got samples of %q, want %q", found, names)
		}
	}
	expect()
	if err := report(t, 1, quick, w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	expect("quick")
	expect()
	begin(connections[1], "COMMIT")
	expect("slow")
	expect()
	if err := report(t, 1, quick, w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	expect("quick")
	begin(connections[0], "ROLLBACK")
	expect()
}

// TestOldSamplesAreDeleted: each report deletes up to 100 samples that are too old.
//
// Set by hand: samples become old in minutes.
func TestOldSamplesAreDeleted(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	w.Exec(`INSERT INTO {samples} (transaction_id, node_id, node_name, at, keep_until, format, body)
		SELECT n::text::xid8, $1, 'old', at, at + interval '10 minutes', 1, ''
		FROM generate_series(1, 250) n, LATERAL (SELECT clock_timestamp() - interval '11 minutes' AS at) times`, node.ID())
	for _, want := range []int{150, 50, 0} {
		if err := report(t, 1, node, w.Pool, everything()); err != nil {
			t.Fatal(err)
		}
		got, _ := w.read("")
		for _, s := range got {
			if s.NodeName == "old" {
				t.Fatal("an old sample was read")
			}
		}
		var left int
		if err := w.Pool.QueryRow(t.Context(), pgtest.SQL(w.Backend, `SELECT count(*) FROM {samples} WHERE node_name = 'old'`)).Scan(&left); err != nil || left != want {
			t.Errorf("%d old samples are left (%v), want %d", left, err, want)
		}
	}
}

// A new reader gets one day of samples, and of older ones no more than the size
// limit.
//
// Set by hand: a day cannot pass in a test.
func TestReadSamplesStartsWithADay(t *testing.T) {
	w := newWorld(t)
	w.node("a") // which makes the tables
	w.Exec(`INSERT INTO {samples} (transaction_id, node_id, node_name, at, keep_until, format, body)
		SELECT hours::text::xid8, $1, hours || 'h', clock_timestamp() - hours * interval '1 hour', clock_timestamp() + interval '1 hour', 1,
			repeat('x', bytes)::bytea
		FROM (VALUES (0, 9 << 20), (1, 1 << 20), (2, 6 << 20), (3, 1), (23, 1 << 20), (25, 1)) s (hours, bytes)`, uuid.New())
	w.Exec(`UPDATE {samples} SET keep_until = clock_timestamp() WHERE node_name = '3h'`)
	got, position := w.read("")
	var names []string
	for _, s := range got {
		names = append(names, s.NodeName)
	}
	if !slices.Equal(names, []string{"2h", "1h", "0h"}) {
		t.Errorf("read those of %q", names)
	}
	if got, _ := w.read(position); len(got) != 0 {
		t.Errorf("and again %v", got)
	}
}

// A sample that cannot be read is reported as such and delays nothing.
func TestUnreadableSampleIsReported(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	for format, body := range map[int]string{1: "no gzip", 2: ""} {
		w.Exec(`INSERT INTO {samples} (node_id, node_name, format, body) VALUES ($1, 'bad', $2, $3)`, node.ID(), format, []byte(body))
	}
	if err := report(t, 1, node, w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	got, _ := w.read("")
	if len(got) != 3 {
		t.Fatalf("read %v", got)
	}
	for _, s := range got {
		if bad := s.NodeName == "bad"; bad != (s.Problem != nil) || bad != (len(s.Series) == 0) {
			t.Errorf("%s: %d series, %v", s.NodeName, len(s.Series), s.Problem)
		}
	}
}

func TestReadSamplesEndsWithErrorOfFn(t *testing.T) {
	w := newWorld(t)
	if err := report(t, 2, w.node("a"), w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	enough, calls := errors.New("enough"), 0
	_, err := metrics.ReadSamples(t.Context(), w.Backend, w.Pool, "", func(metrics.Snapshot) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// refusing is a database that refuses some statements.
type refusing struct {
	postgres.Database
	refusals int
}

func (d *refusing) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if d.refusals--; d.refusals >= 0 {
		return pgconn.CommandTag{}, errors.New("out of order")
	}
	return d.Database.Exec(ctx, sql, args...)
}

func TestReporterContinuesAfterErrors(t *testing.T) {
	w := newWorld(t)
	var logged bytes.Buffer
	node, err := tenure.Open(t.Context(), w.Backend, tenure.Config{Name: "a", Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := report(t, 4, node, &refusing{w.Pool, 3}, everything()); err != nil {
		t.Errorf("the fourth attempt: %v", err)
	}
	if got, _ := w.read(""); len(got) != 1 {
		t.Errorf("%d samples", len(got))
	}
	closeNode(t, node)
	if n := strings.Count(logged.String(), "out of order"); n != 1 {
		t.Errorf("the error was logged %d times:\n%s", n, &logged)
	}
}

// The metrics that could be gathered are written even if others could not.
func TestReporterWritesPartialSamples(t *testing.T) {
	w := newWorld(t)
	half := everything()
	broken := prometheus.NewRegistry()
	broken.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "t_gauge", Help: "Clashes."}, func() float64 { return 1 }))
	if err := report(t, 1, w.node("a"), w.Pool, prometheus.Gatherers{half, broken}); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.read(""); len(got) != 1 || len(got[0].Series) < 9 {
		t.Errorf("read %v", got)
	}
}

func TestNewReporterRejectsOtherBackends(t *testing.T) {
	node := open(t, tenuretest.NewDatabase(), "a")
	defer closeNode(t, node)
	if _, err := metrics.NewReporter(node, nil, everything(), metrics.ReporterConfig{}); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}

func TestNewReporterRejectsInvalidConfig(t *testing.T) {
	w := newWorld(t)
	if _, err := metrics.NewReporter(w.node("a"), w.Pool, everything(), metrics.ReporterConfig{Interval: time.Millisecond}); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("every millisecond: %v", err)
	}
}
