package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/metrics"
)

// A reporter without an interval of its caller gathers every 10 s, or up to a tenth of
// that earlier or later.
func TestReporterGathersEveryTenSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	gathered := make(chan time.Time, 10)
	registry := prometheus.NewRegistry()
	gatherer := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		gathered <- time.Now()
		return registry.Gather()
	})
	reporter, err := metrics.NewReporter(w.node("a"), w.Pool, gatherer, metrics.ReporterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, reporter.Run)
	first, second := <-gathered, <-gathered
	stop()
	if pause := second.Sub(first); pause < 8900*time.Millisecond || pause > 15*time.Second {
		t.Errorf("the second sample came after %v; want 10 s, or up to a second earlier or later", pause)
	}
}
