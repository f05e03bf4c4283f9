package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// NodeMetrics are the metrics of the program's node. There are none until there
// is a node.
type NodeMetrics struct {
	Registry *prometheus.Registry
	Config   metrics.Config
}

func newNodeMetrics(prefix string) *NodeMetrics {
	return &NodeMetrics{prometheus.NewRegistry(), metrics.Config{Prefix: prefix}}
}

func (m *NodeMetrics) handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{})
}

// attach adds the metrics of a node, once, including the metrics of PostgreSQL and of its
// cluster if they apply.
func (m *NodeMetrics) attach(p *Participant) {
	m.Registry.MustRegister(metrics.NewElections(p.Node, m.Config))
	if backend, ok := p.Node.Backend().(*postgres.Backend); ok {
		m.Registry.MustRegister(metrics.NewBackend(backend, m.Config))
	}
	if p.member != nil {
		m.Registry.MustRegister(metrics.NewCluster(p.member, m.Config))
	}
}
