package service

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

// There are no metrics before the node campaigns; then there are those of its
// elections, under the configured prefix.
func TestListenServesMetricsOfElections(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := parseListen(t, "--listen", ":0", "--metrics-prefix", "forge").open(t.Context(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	scrape := func() string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.listener.Addr().String()+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s (%v)", response.Status, body, err)
		}
		return string(body)
	}
	if got := scrape(); got != "" {
		t.Errorf("without a node: %s", got)
	}

	node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	server.attach(&Participant{Node: node}, "")
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := election.WaitForLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := scrape(); !strings.Contains(got, "\nforge_leader_is_leader{role=\"billing\"} 1\n") {
		t.Errorf("with a leader: %s", got)
	}
	if err := node.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A node on PostgreSQL also serves the metrics of its backend.
func TestListenServesMetricsOfPostgres(t *testing.T) {
	t.Parallel()
	node := postgrestest.Unmigrated(t).Node("", tenure.Config{})
	figures := newNodeMetrics("forge")
	figures.attach(&Participant{Node: node})
	families, err := figures.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, family := range families {
		found = found || family.GetName() == "forge_postgres_watch_calls_total"
	}
	if !found {
		t.Errorf("got %v", families)
	}
}
