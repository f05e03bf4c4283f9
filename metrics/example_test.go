package metrics_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/tenuretest"
)

// The program's own registry serves the metrics of its node.
func ExampleNewElections() {
	ctx := context.Background()
	node, err := tenure.Open(ctx, tenuretest.NewDatabase(), tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		log.Fatal(err)
	}
	if err := election.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := election.WaitForLeadership(ctx); err != nil {
		log.Fatal(err)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewElections(node, metrics.Config{Prefix: "shop"}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.Contains(line, "shop_leader_is_leader") {
			fmt.Print(line)
		}
	}
	// Output:
	// # HELP shop_leader_is_leader 1 if this node leads the role, 0 otherwise.
	// # TYPE shop_leader_is_leader gauge
	// shop_leader_is_leader{role="billing"} 1
}
