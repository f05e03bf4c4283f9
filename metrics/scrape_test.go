package metrics_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/exactly-one/tenure"
)

// scraped is the result of a scrape, by name.
type scraped map[string]*dto.MetricFamily

// scrape registers collectors with a registry that checks them against their
// descriptions, and reads the served metrics as Prometheus does.
func scrape(t *testing.T, collectors ...prometheus.Collector) scraped {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns the value of the series of a name that has exactly these
// labels, given as names and values in turn.
func (s scraped) series(name string, labels ...string) (value float64, found bool) {
	for _, metric := range s[name].GetMetric() {
		if len(metric.GetLabel()) != len(labels)/2 {
			continue
		}
		fits := true
		for _, label := range metric.GetLabel() {
			for i := 0; i < len(labels); i += 2 {
				if labels[i] == label.GetName() && labels[i+1] != label.GetValue() {
					fits = false
				}
			}
		}
		if fits {
			return metric.GetGauge().GetValue() + metric.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

// want fails the test unless the series has the value.
func (s scraped) want(t *testing.T, value float64, name string, labels ...string) {
	t.Helper()
	if got, found := s.series(name, labels...); !found || got != value {
		t.Errorf("%s%q: got %v (found: %v), want %v", name, labels, got, found, value)
	}
}

// open opens a node, which the test closes.
func open(t testing.TB, backend tenure.Backend, name string) *tenure.Node {
	t.Helper()
	node, err := tenure.Open(t.Context(), backend, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func closeNode(t testing.TB, node *tenure.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// start makes a node campaign for a role.
func start(t testing.TB, node *tenure.Node, role string) *tenure.Election {
	t.Helper()
	e, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

func lead(t testing.TB, node *tenure.Node, role string) *tenure.Election {
	t.Helper()
	e := start(t, node, role)
	if _, err := e.WaitForLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}
