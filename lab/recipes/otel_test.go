package recipes

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	prometheusbridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/exactly-one/tenure/metrics"
)

// TestMetricsReachOpenTelemetry: the bridge for Prometheus gives a reader of
// OpenTelemetry the metrics of a node, with their types, values and labels.
func TestMetricsReachOpenTelemetry(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	node := i.node("node-1")
	term := i.lead(node)

	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics.NewElections(node, metrics.Config{})); err != nil {
		t.Fatal(err)
	}
	reader := metric.NewManualReader(metric.WithProducer(prometheusbridge.NewMetricProducer(prometheusbridge.WithGatherer(registry))))
	provider := metric.NewMeterProvider(metric.WithReader(reader)) // in a program: a periodic reader with an exporter
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	found := map[string]metricdata.Aggregation{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	leads, ok := found["tenure_leader_is_leader"].(metricdata.Gauge[float64])
	if !ok || len(leads.DataPoints) != 1 {
		t.Fatalf("tenure_leader_is_leader is %#v, want a gauge with one point", found["tenure_leader_is_leader"])
	}
	point := leads.DataPoints[0]
	if role, _ := point.Attributes.Value("role"); point.Value != 1 || role.AsString() != term.Role().Name() {
		t.Errorf("tenure_leader_is_leader is %v for role %q, want 1 for %q", point.Value, role.AsString(), term.Role().Name())
	}
	if elections, ok := found["tenure_leader_elections_total"].(metricdata.Sum[float64]); !ok || !elections.IsMonotonic {
		t.Errorf("tenure_leader_elections_total is %s, want a monotonic sum", fmt.Sprintf("%T", found["tenure_leader_elections_total"]))
	}
}
