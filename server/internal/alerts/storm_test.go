package alerts

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/internal/program/notifier"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// stormRule fires for every role, with templates as people write them.
var stormRule = Rule{
	Name: "storm", Condition: "app_depth > 0", Severity: "warning",
	Annotations: map[string]string{
		"summary":     "the role {{ $labels.role }} on {{ $labels.node_name }} has {{ $value | humanize }}",
		"description": `{{ if gt $value 5.0 }}more than five{{ else }}few{{ end }} of {{ $labels.role }}`,
	},
	Notify: []string{"hook"},
}

// TestStormIsSentInFewMessages: thousands of alerts begin in one round, each with a label that
// PostgreSQL would refuse, and end in another. All are sent, in few messages.
// TENURE_TEST_STORM=1 makes it as many as a rule may have.
func TestStormIsSentInFewMessages(t *testing.T) {
	t.Parallel()
	count := 2000
	if os.Getenv("TENURE_TEST_STORM") != "" {
		count = maxAlerts
	}
	w := newWorld(t)
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: w.receiver.URL, PerMinute: 6000})
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "app_depth", Help: "Of the test."}, []string{"role"})
	registry.MustRegister(depth)
	for i := range count {
		depth.WithLabelValues(fmt.Sprintf("role\x00-%d", i)).Set(float64(i + 1))
	}
	p := w.start("a", Config{Rules: []Rule{stormRule}, Interval: 200 * time.Millisecond})
	w.reportAll(p.node, registry)
	told := func(want int) {
		t.Helper()
		began := time.Now()
		w.await("all notifications", func() bool { received, _ := w.receiver.all(); return len(received) >= want })
		t.Logf("%d were sent after %v", want, time.Since(began))
	}
	told(count)
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	told(2 * count)
	times := map[string]int{}
	received, _ := w.receiver.all()
	for _, one := range received {
		times[one]++
	}
	if times["storm firing"] != count || times["storm resolved"] != count {
		t.Errorf("they were sent %v", times)
	}
}

// BenchmarkStorm evaluates a rule that yields as many alerts as it may.
func BenchmarkStorm(b *testing.B) {
	store, now := measured(10_000, 2)
	rule := stormRule
	rule.Condition = "tenure_leader_failovers_total >= 0"
	e := newEvaluator(store)
	for b.Loop() {
		if outcome := e.evaluate(b.Context(), now, []Rule{rule})[0]; outcome.err != nil {
			b.Fatal(outcome.err)
		}
	}
}
