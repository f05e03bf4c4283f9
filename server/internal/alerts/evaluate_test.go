package alerts

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/prometheus/storage"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/server/internal/series"
)

// measured is a store with so many series of one metric, each with rounds samples.
func measured(count, rounds int) (*series.Store, time.Time) {
	store, id := series.New(series.Config{}), uuid.New()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range rounds {
		now = now.Add(10 * time.Second)
		snapshot := metrics.Snapshot{Node: id, NodeName: "a", At: now}
		for n := range count {
			snapshot.Series = append(snapshot.Series, metrics.Series{
				Name: "tenure_leader_failovers_total", Type: metrics.CounterSeries, Value: float64(i*n) + rand.Float64(),
				Labels: map[string]string{"role": "role-" + strconv.Itoa(n)},
			})
		}
		store.Append(snapshot)
	}
	return store, now
}

// TestEvaluateMergesLabelsAndTemplates: each series is an alert with the labels of both and templates
// filled in; the rule's labels win.
func TestEvaluateMergesLabelsAndTemplates(t *testing.T) {
	t.Parallel()
	store, now := measured(2, 2)
	rule := Rule{
		Name: "r", Severity: "warning", Condition: `tenure_leader_failovers_total{role="role-1"} > bool 100`,
		Labels: map[string]string{"team": "{{ $labels.role }}-team", "node": "", "node_name": "x"},
		Annotations: map[string]string{
			"summary": `{{ $labels.role }} has {{ printf "%.1f" $value }} and {{ len (query "tenure_leader_failovers_total") }}`,
			"zero":    "a\x00b",
		},
	}
	outcomes := newEvaluator(store).evaluate(t.Context(), now, []Rule{rule})
	if outcomes[0].err != nil || len(outcomes[0].found) != 1 {
		t.Fatalf("%+v", outcomes)
	}
	want := found{
		labels: map[string]string{
			"alertname": "r", "severity": "warning", "role": "role-1", "team": "role-1-team", "node_name": "x",
		},
	}
	got := outcomes[0].found[0]
	if annotations := got.annotate(); !maps.Equal(annotations, map[string]string{"summary": "role-1 has 0.0 and 2", "zero": "ab"}) {
		t.Errorf("the annotations are %q", annotations)
	}
	if got.annotate = nil; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
	rule.Condition = "tenure_leader_failovers_total"
	rule.Labels = map[string]string{"role": "same"}
	if err := newEvaluator(store).evaluate(t.Context(), now, []Rule{rule})[0].err; err == nil || !strings.Contains(err.Error(), "two series have the labels") {
		t.Errorf("%v", err)
	}
	many, now := measured(maxAlerts+1, 1)
	if err := newEvaluator(many).evaluate(t.Context(), now, []Rule{rule})[0].err; err == nil || !strings.Contains(err.Error(), "the limit is 10000") {
		t.Errorf("%v", err)
	}
}

// TestSlowRulesDoNotDelayOthers: where rules take all the time, those that are quick are evaluated
// nevertheless, and the slow ones say why they are not.
func TestSlowRulesDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	store, now := measured(1, 1)
	e := newEvaluator(store)
	ended, cancel := context.WithCancel(t.Context())
	rules := []Rule{
		{Name: "slow", Condition: "tenure_leader_failovers_total"}, {Name: "quick", Condition: "vector(1)"}, {Name: "middling", Condition: "vector(1)"},
	}
	// Set by hand: a rule that takes a minute in truth would take a minute here.
	e.took = map[string]time.Duration{"slow": time.Minute, "middling": time.Second}
	begun := 0
	e.series = queryableFunc(func(from, to int64) (storage.Querier, error) {
		if begun++; begun == len(rules) {
			cancel() // the time is over when the last one begins
		}
		return store.Querier(from, to)
	})
	outcomes := e.evaluate(ended, now, rules)
	if outcomes[0].err == nil || !strings.Contains(outcomes[0].err.Error(), "all conditions together") {
		t.Errorf("of the slow one the error is %v", outcomes[0].err)
	}
	for _, o := range outcomes[1:] {
		if o.err != nil || len(o.found) != 1 {
			t.Errorf("%s: %+v", o.rule.Name, o)
		}
	}
	if e.took["slow"] < 10*time.Second {
		t.Errorf("the slow one counts as quick: it took %v", e.took["slow"])
	}
}

// queryableFunc is a storage that a function opens.
type queryableFunc func(from, to int64) (storage.Querier, error)

func (f queryableFunc) Querier(from, to int64) (storage.Querier, error) { return f(from, to) }

// TestAnnotationsStayUnexpandedWithoutTime: annotations stay unexpanded if no time is left for them.
func TestAnnotationsStayUnexpandedWithoutTime(t *testing.T) {
	t.Parallel()
	left := &allowance{ctx: t.Context(), time: time.Hour}
	texts := map[string]string{"summary": "{{ $labels.role }} is down"}
	own := map[string]string{"role": "r"}
	for _, want := range []string{"r is down", "{{ $labels.role }} is down"} {
		var got map[string]string
		left.spend(func(ctx context.Context) { got = expand(ctx, texts, own, 0, time.Now(), nil) })
		if got["summary"] != want {
			t.Errorf("it says %q; want %q", got["summary"], want)
		}
		left.time = 0
	}
}

// BenchmarkEvaluate evaluates over 10,000 series of an hour: one round of each of
// these must take less than 200 ms.
func BenchmarkEvaluate(b *testing.B) {
	store, now := measured(10_000, 70)
	for _, condition := range []string{
		"sum(forge_leader_failovers_total) == 0", "rate(forge_leader_failovers_total[5m]) > 1e9", "tenure_leader_failovers_total < 0",
	} {
		b.Run(condition, func(b *testing.B) {
			e := newEvaluator(store)
			for b.Loop() {
				if outcome := e.evaluate(b.Context(), now, []Rule{{Name: "r", Condition: condition}})[0]; outcome.err != nil {
					b.Fatal(outcome.err)
				}
			}
		})
	}
}
