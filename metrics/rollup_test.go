package metrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/metrics"
)

// measured is a process that measures a gauge and a counter.
type measured struct {
	*world
	node     *tenure.Node
	registry *prometheus.Registry
	gauge    *prometheus.GaugeVec
	counter  prometheus.Counter
}

func (w *world) process(node *tenure.Node) measured {
	m := measured{
		w, node, prometheus.NewRegistry(),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "t_gauge", Help: "g"}, []string{"role"}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "t_total", Help: "c"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "t_info", Help: "i"})
	m.registry.MustRegister(m.gauge, m.counter, info)
	return m
}

// sample writes a lasting sample as if at a time, the first of its process or not.
func (m measured) sample(at string, first bool, gauge, count float64) {
	m.Helper()
	m.gauge.WithLabelValues("nul\x00<b>").Set(gauge)
	m.counter.Add(count)
	if err := report(m, 1, m.node, m.Pool, m.registry); err != nil {
		m.Fatal(err)
	}
	m.Exec(`
UPDATE {samples} SET at = $1, first = $2, lasting = true
WHERE at > clock_timestamp() - interval '1 hour' AND node_id = $3`, parseTime(m, at), first, m.node.ID())
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// fold folds all that there is to fold.
func (w *world) fold() (batches int) {
	w.Helper()
	for {
		var folded int
		err := pgx.BeginFunc(w.Context(), w.Pool, func(tx pgx.Tx) (err error) {
			folded, err = metrics.RollUpSamples(w.Context(), tx, w.Backend)
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
		if folded == 0 {
			return batches
		}
		batches++
	}
}

// sum is a row of the sums of days.
type sum struct {
	Day, Metric, Kind string
	Samples           int64
	Total             float64
	Least, Greatest   *float64
}

func (w *world) sums() (all map[string]sum) {
	w.Helper()
	rows, err := w.Pool.Query(w.Context(), pgtest.SQL(w.Backend,
		`SELECT day::text, metric, kind, samples, total, least, greatest FROM {sample_days}`))
	if err != nil {
		w.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sum])
	if err != nil {
		w.Fatal(err)
	}
	all = map[string]sum{}
	for _, s := range list {
		all[s.Day+" "+s.Metric] = s
	}
	return all
}

// Each sample and each increase counts once: over midnight, from one process to
// the next, of several nodes, and from one transaction to the next.
func TestRollUpCountsEachSampleOnce(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	process := w.process(node)
	process.sample("2026-01-01T23:50:00Z", true, -1.5, 3) // 3 from zero
	process.sample("2026-01-01T23:55:00Z", false, 2, 2)
	process.sample("2026-01-02T00:00:00Z", false, 4, 4)
	process = w.process(node) // its counters begin at zero
	process.sample("2026-01-02T00:05:00Z", true, 6, 2)
	other := w.process(w.node("b"))
	other.sample("2026-01-02T00:05:00Z", false, 8, 100) // the earlier values are gone: they were counted then
	other.sample("2026-01-02T00:10:00Z", false, 8, 1)
	present := time.Now().UTC()
	process.sample(present.Add(-2*time.Hour).Format(time.RFC3339), false, 7, 5)
	if batches := w.fold(); batches != 2 {
		t.Errorf("%d transactions; want one for each node", batches)
	}
	check := func(want map[string][4]float64) {
		t.Helper()
		got := w.sums()
		if len(got) != len(want) {
			t.Errorf("got %v", got)
		}
		for key, values := range want {
			s, found := got[key], [4]float64{}
			found[0], found[1] = float64(s.Samples), s.Total
			if s.Least != nil && s.Greatest != nil {
				found[2], found[3] = *s.Least, *s.Greatest
			}
			if found != values || (s.Least != nil) != (s.Kind == "gauge") {
				t.Errorf("%s: got %v %s, want %v", key, found, s.Kind, values)
			}
		}
	}
	day := present.Add(-2 * time.Hour).Format(time.DateOnly)
	want := map[string][4]float64{
		"2026-01-01 t_gauge": {2, 0.5, -1.5, 2}, "2026-01-01 t_total": {2, 5},
		"2026-01-02 t_gauge": {4, 26, 4, 8}, "2026-01-02 t_total": {3, 7},
		day + " t_total": {1, 5},
	}
	check(want)
	if got, _ := w.read(""); len(got) != 1 {
		t.Errorf("%d samples are left; the one of today is not old", len(got))
	}

	w.Exec(`UPDATE {samples} SET at = '2026-01-02 00:20Z'`)
	w.fold()
	want["2026-01-02 t_gauge"] = [4]float64{5, 33, 4, 8}
	check(want)
	if w.fold() != 0 {
		t.Error("there is still something to fold")
	}
}

// Many samples take several transactions, and large ones more of them.
// Unreadable samples count for nothing and are deleted too.
func TestRollUpSplitsManySamples(t *testing.T) {
	w := newWorld(t)
	process := w.process(w.node("a"))
	process.sample("2026-01-01T00:00:00Z", true, 1, 3)
	process.sample("2026-01-01T00:01:00Z", false, 1, 4) // the copies go up from 3 to 7 and begin again at 3
	copies := `
INSERT INTO {samples} (transaction_id, node_id, node_name, at, format, body, lasting, first)
SELECT n::text::xid8, $1, 'a', timestamptz '2026-01-01 00:00Z' + n * interval '1 minute', $2, body, true, false
FROM generate_series($3::int, $3 + $4::int - 1) n
JOIN (SELECT body, row_number() OVER (ORDER BY at) - 1 AS number FROM {samples} WHERE format = 1 LIMIT 2) copied ON number = n % 2`
	w.Exec(copies, process.node.ID(), 1, 2, 118)
	w.Exec(copies, uuid.New(), 99, 200, 10)
	w.Exec(`UPDATE {samples} SET body = body || repeat('x', 200000)::bytea WHERE format = 99`)
	if batches := w.fold(); batches != 3+9 {
		t.Errorf("%d transactions", batches)
	}
	got := w.sums()
	if g, c := got["2026-01-01 t_gauge"], got["2026-01-01 t_total"]; g.Samples != 120 || g.Total != 120 || c.Total != 3+60*4+59*3 || len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if left, _ := w.read(""); len(left) != 0 {
		t.Errorf("%d samples are left", len(left))
	}
}

// A transaction with an unknown outcome has rolled up samples: another
// transaction that rolls them up again must not commit.
func TestRollUpInFlightCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process(w.node("a"))
	process.sample("2026-01-01T12:00:00Z", true, 1, 3)
	process.sample("2026-01-01T12:05:00Z", false, 2, 2)
	first, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(context.Background())
	if n, err := metrics.RollUpSamples(t.Context(), first, w.Backend); err != nil || n != 2 {
		t.Fatalf("summed up %d, %v", n, err)
	}
	second := make(chan error, 1)
	go func() {
		second <- pgx.BeginFunc(t.Context(), w.Pool, func(tx pgx.Tx) error {
			_, err := metrics.RollUpSamples(t.Context(), tx, w.Backend)
			return err
		})
	}()
	const waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
	for blocked := false; !blocked; {
		if err := first.QueryRow(t.Context(), waits, int32(first.Conn().PgConn().PID())).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
		// Within a transaction, the server returns the activity as of the first read.
		pgtest.Exec(t, first, "SELECT pg_stat_clear_snapshot()")
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, dberr.ErrBusy) {
		t.Errorf("the second transaction: %v", err)
	}
	w.fold()
	if got := w.sums()["2026-01-01 t_total"]; got.Total != 5 {
		t.Errorf("the sum is %+v", got)
	}
}
