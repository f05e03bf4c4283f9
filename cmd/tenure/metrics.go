package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// nodeMetrics are the metrics of the program's node. There are none until it has
// one.
type nodeMetrics struct {
	registry *prometheus.Registry
	config   metrics.Config
}

func newNodeMetrics(prefix string) *nodeMetrics {
	return &nodeMetrics{prometheus.NewRegistry(), metrics.Config{Prefix: prefix}}
}

func (m *nodeMetrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// attach adds the metrics of a node, once, those of PostgreSQL if it is on that,
// and those of its cluster if it has joined one.
func (m *nodeMetrics) attach(p *participant) {
	m.registry.MustRegister(metrics.NewElections(p.node, m.config))
	if backend, ok := p.node.Backend().(*postgres.Backend); ok {
		m.registry.MustRegister(metrics.NewBackend(backend, m.config))
	}
	if p.member != nil {
		m.registry.MustRegister(metrics.NewCluster(p.member, m.config))
	}
}
