package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/postgres"
)

// Backend collects the statistics of a backend on PostgreSQL, by [postgres.Backend.Stats],
// under PREFIX_postgres_.
type Backend struct {
	backend  *postgres.Backend
	families families

	watchCalls, watchFailures, fenced family
}

var _ prometheus.Collector = (*Backend)(nil)

// NewBackend returns a collector for a backend.
func NewBackend(backend *postgres.Backend, config Config) *Backend {
	f := newFamilies(config.withDefaults(), "postgres")
	c := &Backend{
		backend:       backend,
		watchCalls:    f.counter("watch_calls_total", "Calls on the watch connections, which wait for the death of other nodes."),
		watchFailures: f.counter("watch_failures_total", "Watch connections that failed."),
		fenced:        f.counter("fenced_rejections_total", "Fenced transactions that were rejected because their term had ended."),
	}
	c.families = f
	return c
}

// Describe implements [prometheus.Collector].
func (c *Backend) Describe(to chan<- *prometheus.Desc) { c.families.describe(to) }

// Collect implements [prometheus.Collector].
func (c *Backend) Collect(to chan<- prometheus.Metric) {
	stats := c.backend.Stats()
	c.watchCalls.send(to, float64(stats.WatchCalls))
	c.watchFailures.send(to, float64(stats.WatchFailures))
	c.fenced.send(to, float64(stats.Fenced))
}
