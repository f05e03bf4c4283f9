package alerts

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/server/internal/series"
)

// presence evaluates a metric over the nodes that the database knows, by their names.
func (w *world) presence(metric string) map[string]float64 {
	w.Helper()
	_, nodes, err := w.tables.readKnown(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	store, now := series.New(series.Config{}), time.Now()
	store.Complete(now, nil, nodes)
	vector, err := newEvaluator(store).query(w.Context(), metric, now)
	if err != nil {
		w.Fatal(err)
	}
	values := map[string]float64{}
	for _, sample := range vector {
		values[sample.Metric.Get("node_name")] = sample.F
	}
	return values
}

// TestNodeUpFollowsTheRegistry: a live node without samples is up; so is one that has
// restarted under a new id, while its dead row remains; a node that left is not known.
func TestNodeUpFollowsTheRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.idle("a")
	want := func(what, metric string, want map[string]float64) {
		t.Helper()
		if got := w.presence(metric); !maps.Equal(got, want) {
			t.Errorf("%s: %s is %v; want %v", what, metric, got, want)
		}
	}
	want("without samples", "tenure_node_up", map[string]float64{"a": 1})
	want("without samples", "tenure_node_reporting", map[string]float64{"a": 0})
	died := func(name string) {
		w.exec(`INSERT INTO {nodes} SELECT (jsonb_populate_record(n, jsonb_build_object(
			'id', gen_random_uuid(), 'name', $2::text, 'status', 'dead', 'incarnation', n.incarnation + 1000 + length($2), 'died_at', now()
		))).* FROM {nodes} n WHERE id = $1`, node.ID(), name)
	}
	died("a")
	want("after a restart", "tenure_node_up", map[string]float64{"a": 1})
	died("other")
	want("after a death", "tenure_node_up", map[string]float64{"a": 1, "other": 0})
	want("after a death", "tenure_node_reporting", map[string]float64{"a": 0})
	host := value[string](w, `SELECT hostname FROM {nodes} WHERE id = $1`, node.ID())
	died(host + "-123")
	if up := w.presence("tenure_node_up == 0"); len(up) != 2 {
		t.Errorf("no later process has a default name, and down are %v", up)
	}
	w.exec(`UPDATE {nodes} SET last_heartbeat = started_at - interval '1 s' WHERE name = $1`, host+"-123")
	successor := w.idle(host + "-124")
	if up := w.presence("tenure_node_up == 0"); len(up) != 1 {
		t.Errorf("a later process on the host has a default name, and down are %v", up)
	}
	w.close(successor)
	w.exec(`DELETE FROM {nodes} WHERE status = 'dead'`)
	w.close(node)
	if up := w.presence("tenure_node_up"); len(up) != 0 || strings.TrimSpace(host) == "" {
		t.Errorf("after all nodes left, tenure_node_up is %v", up)
	}
}
