package alerts

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/notifiers"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// patience is how long a test waits for something that should happen.
const patience = 30 * time.Second

// world is a schema with nodes that run engines, and a receiver of webhooks.
type world struct {
	*testing.T
	server   *pgtest.Server
	schema   string
	pool     *pgxpool.Pool
	backend  *postgres.Backend
	tables   tables
	receiver *receiver
	set      notifiers.Set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	w := &world{T: t, server: server, schema: schema, pool: server.Pool(t), receiver: newReceiver(t)}
	w.backend = w.open()
	if err := w.backend.Migrate(t.Context(), "alerts", "samples"); err != nil {
		t.Fatal(err)
	}
	w.tables = tablesOf(w.backend, w.pool)
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifiers.Webhook, URL: w.receiver.URL})
	return w
}

func (w *world) open() *postgres.Backend {
	w.Helper()
	backend, err := postgres.New(w.server.DSN(), postgres.Config{Schema: w.schema})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(backend.Close)
	return backend
}

func (w *world) notifiers(configs ...notifiers.Config) notifiers.Set {
	w.Helper()
	set, err := notifiers.Open(configs)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(set.Close)
	return set
}

// process is a node that runs an engine.
type process struct {
	node   *tenure.Node
	engine *Engine
	stop   func() // politely
}

// idle opens a node that runs nothing, until the test ends.
func (w *world) idle(name string) *tenure.Node {
	w.Helper()
	node, err := tenure.Open(w.Context(), w.open(), tenure.Config{
		Name: name, CheckInterval: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { w.close(node) })
	return node
}

// close closes a node, unless it is closed already.
func (w *world) close(node *tenure.Node) {
	w.Helper()
	closing, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := node.Close(closing); err != nil {
		w.Error(err)
	}
}

// start starts a process that ends with the test at the latest.
func (w *world) start(name string, config Config) *process {
	w.Helper()
	node := w.idle(name)
	if config.Database == nil {
		config.Database = w.pool
	}
	if config.Interval == 0 {
		config.Interval = 50 * time.Millisecond
	}
	if config.Notifiers == nil {
		config.Notifiers = w.set
	}
	engine, err := New(config)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx, node) }()
	p := &process{node: node, engine: engine, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.close(node)
	})}
	w.Cleanup(p.stop)
	return p
}

// report writes one sample in a node's name.
func (w *world) report(node *tenure.Node, gauges map[string]float64) {
	w.Helper()
	registry := prometheus.NewRegistry()
	for name, value := range gauges {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Of the test."})
		g.Set(value)
		registry.MustRegister(g)
	}
	w.reportAll(node, registry)
}

// reportAll writes one sample of everything in a registry in a node's name.
func (w *world) reportAll(node *tenure.Node, registry *prometheus.Registry) {
	w.Helper()
	reporter, err := metrics.NewReporter(node, w.pool, registry, metrics.ReporterConfig{Interval: time.Hour})
	if err != nil {
		w.Fatal(err)
	}
	before := w.samples()
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- reporter.Run(ctx) }()
	w.await("the sample", func() bool { return w.samples() > before })
	cancel()
	if err := <-done; err != nil {
		w.Fatal(err)
	}
}

func (w *world) samples() int { return value[int](w, `SELECT count(*) FROM {samples}`) }

// await waits for a condition on the database or a receiver.
func (w *world) await(what string, condition func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), w.backend.SQL(sql), args...); err != nil {
		w.Fatal(err)
	}
}

func value[V any](w *world, sql string, args ...any) V {
	w.Helper()
	rows, _ := w.pool.Query(w.Context(), w.backend.SQL(sql), args...)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// states are the alerts in the database, each as its rule and its state.
func (w *world) states() []string {
	w.Helper()
	present, err := w.tables.readAlerts(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, a := range present {
		all = append(all, a.Rule+" "+string(a.State))
	}
	slices.Sort(all)
	return all
}

// receiver takes webhooks, and answers as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	refused  int
	received []string // the name and the status of each alert
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	var message struct {
		Alerts []struct{ Name, Status string }
	}
	err := json.NewDecoder(request.Body).Decode(&message)
	r.mu.Lock()
	status := r.status
	if err != nil {
		status = http.StatusBadRequest
	}
	if status == http.StatusOK {
		for _, a := range message.Alerts {
			r.received = append(r.received, a.Name+" "+a.Status)
		}
	} else {
		r.refused++
	}
	r.mu.Unlock()
	w.WriteHeader(status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() (received []string, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received), r.refused
}
