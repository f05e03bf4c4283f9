package alerts

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Handler serves the metrics of the whole cluster where the engine leads. On every node
// it reports whether the engine leads: a scrape of all nodes finds the rest once.
func (e *Engine) Handler() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(e.collector())
	return promhttp.HandlerFor(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		e.mu.Lock()
		leads := e.leads
		e.mu.Unlock()
		all, err := own.Gather()
		if !leads || err != nil {
			return all, err
		}
		clusterWide, err := e.store.Gather()
		return append(all, clusterWide...), err
	}), promhttp.HandlerOpts{})
}

// collector collects the engine's own metrics.
func (e *Engine) collector() prometheus.Collector {
	name := func(rest string) string { return e.config.Prefix + "_aggregator_" + rest }
	return &engineCollector{
		engine:     e,
		leads:      prometheus.NewDesc(name("is_leader"), "1 if this node makes the metrics of the cluster and evaluates alerts, 0 otherwise.", nil, nil),
		series:     prometheus.NewDesc(name("series"), "Series that are kept.", nil, nil),
		evaluation: prometheus.NewDesc(name("evaluation_seconds"), "How long the last evaluation of all alerts took.", nil, nil),
		age: prometheus.NewDesc(name("round_age_seconds"),
			"Seconds since alerts were evaluated the last time. It grows while that fails.", nil, nil),
		alerts: prometheus.NewDesc(name("alerts"), "Alerts by state.", []string{"state"}, nil),
	}
}

type engineCollector struct {
	engine                                 *Engine
	leads, series, evaluation, age, alerts *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *engineCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.leads
	to <- c.series
	to <- c.evaluation
	to <- c.age
	to <- c.alerts
}

// Collect implements [prometheus.Collector].
func (c *engineCollector) Collect(to chan<- prometheus.Metric) {
	c.engine.mu.Lock()
	leads, took, age := c.engine.leads, c.engine.took, time.Since(c.engine.shown)
	counts := map[State]int{}
	for _, a := range c.engine.present {
		counts[a.State]++
	}
	c.engine.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if !leads {
		gauge(c.leads, 0)
		return
	}
	gauge(c.leads, 1)
	gauge(c.series, float64(c.engine.store.Len()))
	gauge(c.evaluation, took.Seconds())
	gauge(c.age, age.Seconds())
	for _, state := range []State{Pending, Firing} {
		gauge(c.alerts, float64(counts[state]), string(state))
	}
}
