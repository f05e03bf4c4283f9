package alerts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/metrics"
)

// ourMetrics are the metrics of the nodes.
var ourMetrics = metrics.Definitions()

// knownMetrics are all metrics of the nodes and of the aggregator, without their prefix.
var knownMetrics = func() []string {
	names := []string{"node_up", "node_reporting"}
	for _, d := range ourMetrics {
		if d.Type == metrics.HistogramSeries {
			names = append(names, d.Name+"_bucket", d.Name+"_sum", d.Name+"_count")
		} else {
			names = append(names, d.Name)
		}
	}
	return names
}()

// UnknownMetrics returns the metrics of a condition with a prefix of this program, if the
// program does not have them. Such a condition can never hold.
func UnknownMetrics(condition, prefix string) []string {
	expression, err := parse(condition)
	if err != nil {
		return nil
	}
	return unknownMetrics(expression, prefix)
}

// unknownMetrics returns metrics with a prefix of this program, if the program does not
// have them. Metrics with other prefixes may be the application's.
func unknownMetrics(expression parser.Expr, prefix string) []string {
	var unknown, reported []string
	for _, matchers := range parser.ExtractSelectors(expression) {
		for _, m := range matchers {
			if m.Name != model.MetricNameLabel || m.Type != labels.MatchEqual || slices.Contains(reported, m.Value) {
				continue
			}
			reported = append(reported, m.Value)
			if one := unknownMetric(m.Value, prefix); one != "" {
				unknown = append(unknown, one)
			}
		}
	}
	return unknown
}

func unknownMetric(name, prefix string) string {
	for _, begin := range []string{"tenure", "forge", prefix} {
		rest, ours := strings.CutPrefix(name, begin+"_")
		if begin == "" || !ours {
			continue
		}
		if slices.Contains(knownMetrics, rest) {
			return ""
		}
		if meant := nearest.Of(rest, knownMetrics); meant != "" {
			return fmt.Sprintf("there is no metric %s; did you mean %s_%s?", name, begin, meant)
		}
		return fmt.Sprintf("there is no metric %s", name)
	}
	return ""
}
