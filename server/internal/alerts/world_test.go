package alerts

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/notifier"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

const patience = postgrestest.Patience

// world is a schema with nodes that run engines, and a receiver of webhooks.
type world struct {
	*postgrestest.Installation
	pool     *pgxpool.Pool
	backend  *postgres.Backend
	tables   tables
	receiver *receiver
	set      notifiers.Set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, pgtest.Shared(t))
}

func newWorldOn(t *testing.T, server *pgtest.Server) *world {
	t.Helper()
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate("alerts", "samples")
	w := &world{Installation: i, pool: i.Pool, backend: i.Backend, receiver: newReceiver(t)}
	w.tables = tablesOf(w.backend, w.pool)
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: w.receiver.URL})
	return w
}

func (w *world) open() *postgres.Backend { w.Helper(); return w.NewBackend() }

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
	return postgrestest.OpenNode(w, w.open(), tenure.Config{Name: name, CheckInterval: 200 * time.Millisecond})
}

// close closes a node, unless it is closed already.
func (w *world) close(node *tenure.Node) { w.Helper(); postgrestest.Close(w, node) }

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
	end := postgrestest.Run(w, func(ctx context.Context) error { return engine.Run(ctx, node) })
	return &process{node: node, engine: engine, stop: func() {
		end()
		w.close(node)
	}}
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

func (w *world) await(what string, condition func() bool) { w.Helper(); w.Await(what, condition) }

func (w *world) exec(sql string, args ...any) { w.Helper(); w.Exec(sql, args...) }

func value[V any](w *world, sql string, args ...any) V {
	w.Helper()
	return postgrestest.Value[V](w.Installation, sql, args...)
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

// receiver takes webhooks, and gives the answers that the test has set.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	refused  int
	received []string // the name and the status of each alert
	messages []heard
}

// heard is a message as the receiver understands it.
type heard struct {
	Title, Cluster, Incident, URL string
	Alerts                        []struct {
		Name, Status string
		Since        time.Time
		EndedAt      time.Time `json:"ended_at"`
		Annotations  map[string]string
		Links        []notifiers.Link
	}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	var message heard
	err := json.NewDecoder(request.Body).Decode(&message)
	r.mu.Lock()
	status := r.status
	if err != nil {
		status = http.StatusBadRequest
	}
	if status == http.StatusOK {
		r.messages = append(r.messages, message)
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

func (r *receiver) heard() []heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
}
