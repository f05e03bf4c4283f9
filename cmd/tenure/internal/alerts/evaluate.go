package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

const (
	// lookback is for how long the last value of a series counts, where nothing
	// says that it has ended.
	lookback = 5 * time.Minute
	// maxQuerySamples bounds the memory of one condition, to about 800 MB.
	maxQuerySamples = 50_000_000
	queryTimeout    = 10 * time.Second
	// maxAlerts is how many series a condition may yield.
	maxAlerts = 10_000
)

// evaluator answers conditions by Prometheus's engine.
type evaluator struct {
	engine *promql.Engine
	series storage.Queryable
}

func newEvaluator(series storage.Queryable) *evaluator {
	return &evaluator{series: series, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxQuerySamples, Timeout: queryTimeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: language,
	})}
}

// evaluate returns what each rule yields at a time.
func (e *evaluator) evaluate(ctx context.Context, now time.Time, rules []Rule) []outcome {
	outcomes := make([]outcome, len(rules))
	for i, rule := range rules {
		all, err := e.one(ctx, now, rule)
		outcomes[i] = outcome{rule, all, err}
	}
	return outcomes
}

func (e *evaluator) one(ctx context.Context, now time.Time, rule Rule) ([]found, error) {
	vector, err := e.query(ctx, rule.Condition, now)
	if err != nil {
		return nil, err
	}
	if len(vector) > maxAlerts {
		return nil, fmt.Errorf("the condition yields %d series; the most is %d", len(vector), maxAlerts)
	}
	query := template.QueryFunc(func(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
		return e.query(ctx, text, at)
	})
	all := make([]found, len(vector))
	seen := map[string]bool{}
	for i, sample := range vector {
		if sample.H != nil {
			return nil, errors.New("the condition yields histograms; compare a number of them")
		}
		own := labelMap(sample.Metric)
		f := found{labels: maps.Clone(own), value: sample.F}
		maps.Copy(f.labels, expand(ctx, rule.Labels, own, sample.F, now, query))
		maps.DeleteFunc(f.labels, func(_, value string) bool { return value == "" }) // which is the same as no label
		f.labels["alertname"], f.labels["severity"] = rule.Name, rule.Severity
		f.annotations = expand(ctx, rule.Annotations, own, sample.F, now, query)
		key := fingerprint(f.labels)
		if seen[key] {
			return nil, fmt.Errorf("two series have the labels %v: the rule's labels must not make them equal", f.labels)
		}
		seen[key] = true
		all[i] = f
	}
	return all, ctx.Err()
}

func (e *evaluator) query(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
	q, err := e.engine.NewInstantQuery(ctx, e.series, nil, text, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	switch value := result.Value.(type) {
	case promql.Vector:
		return append(promql.Vector(nil), value...), result.Err // the engine uses it again
	case promql.Scalar:
		return promql.Vector{{T: value.T, F: value.V, Metric: labels.EmptyLabels()}}, result.Err
	}
	if result.Err == nil {
		result.Err = fmt.Errorf("the condition yields a %s", parser.DocumentedType(result.Value.Type()))
	}
	return nil, result.Err
}

// labelMap are the labels of a series without its name.
func labelMap(l labels.Labels) map[string]string {
	all := map[string]string{}
	l.Range(func(label labels.Label) {
		if label.Name != model.MetricNameLabel {
			all[storable(label.Name, maxText)] = storable(label.Value, maxText)
		}
	})
	return all
}
