package alerts

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestExportIsReadByPrometheus: Prometheus's parser accepts the file and finds the rules in it.
func TestExportIsReadByPrometheus(t *testing.T) {
	t.Parallel()
	const condition, summary = "sum(tenure_leader_is_leader{role='scheduler'}) == 0", "{{ $value }} \"lead\" the scheduler\n"
	var text strings.Builder
	if err := Export(&text, []Rule{
		{Name: "no leader", Condition: condition, For: 30 * time.Second, Severity: "critical", Annotations: map[string]string{"summary": summary}, Notify: []string{"slack:#ops"}},
		{Name: "other", Condition: "up == 0", Severity: "warning"},
	}); err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse([]byte(text.String()), false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 || len(groups.Groups) != 1 || len(groups.Groups[0].Rules) != 2 {
		t.Fatalf("%v in\n%s", errs, text.String())
	}
	rule := groups.Groups[0].Rules[0]
	if rule.Alert != "no leader" || rule.Expr != condition || rule.For.String() != "30s" || rule.Labels["severity"] != "critical" ||
		rule.Labels["notify"] != "slack:#ops" || rule.Annotations["summary"] != summary {
		t.Errorf("%+v", rule)
	}
}
