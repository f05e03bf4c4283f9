package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

const (
	// lookback is how long the last value of a series counts if the series has not ended.
	lookback = 5 * time.Minute
	// maxQuerySamples bounds the memory of one condition: a sample takes up to
	// 300 bytes if it is the only one of its series.
	maxQuerySamples = 1_000_000
	// ruleTimeout bounds one rule, and evaluationTimeout all of them, to leave time in
	// the round for writing the results.
	ruleTimeout       = 10 * time.Second
	evaluationTimeout = 15 * time.Second
	// annotationsTimeout bounds the time for the annotations of all new alerts of a
	// round. Annotations beyond it keep their templates unexpanded.
	annotationsTimeout = 5 * time.Second
	// maxAlerts is how many series a condition may yield.
	maxAlerts = 10_000
)

// evaluator answers conditions by Prometheus's engine.
type evaluator struct {
	engine *promql.Engine
	series storage.Queryable
	took   map[string]time.Duration // by each rule the last time
}

func newEvaluator(series storage.Queryable) *evaluator {
	return &evaluator{series: series, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxQuerySamples, NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() }, Timeout: ruleTimeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: language,
	})}
}

// evaluate returns the result of each rule at a time. The slowest rules of the last time
// come last: if time is short, it is short for them alone.
func (e *evaluator) evaluate(ctx context.Context, now time.Time, rules []Rule) []outcome {
	evaluating, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	outcomes, took := make([]outcome, len(rules)), map[string]time.Duration{}
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.took[rules[a].Name], e.took[rules[b].Name]) })
	left := &allowance{ctx: ctx, time: annotationsTimeout}
	for _, i := range order {
		began := time.Now()
		all, err := e.one(evaluating, now, rules[i], left)
		took[rules[i].Name] = max(time.Since(began), e.took[rules[i].Name]/2) // one that had no time is not quick
		if err != nil && evaluating.Err() != nil {
			err = fmt.Errorf("all conditions together take longer than %v: %w", evaluationTimeout, err)
		}
		outcomes[i] = outcome{rules[i], all, err}
	}
	e.took = took
	return outcomes
}

func (e *evaluator) one(ctx context.Context, now time.Time, rule Rule, left *allowance) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	vector, err := e.query(ctx, rule.Condition, now)
	if err != nil {
		return nil, err
	}
	if len(vector) > maxAlerts {
		return nil, fmt.Errorf("the condition yields %d series; the limit is %d", len(vector), maxAlerts)
	}
	query := template.QueryFunc(func(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
		return e.query(ctx, text, at)
	})
	all := make([]found, len(vector))
	seen := map[string]bool{}
	for i, sample := range vector {
		if sample.H != nil {
			return nil, errors.New("the condition yields histograms: compare a number derived from them")
		}
		own := labelMap(sample.Metric)
		f := found{labels: maps.Clone(own), value: sample.F}
		maps.Copy(f.labels, expand(ctx, rule.Labels, own, sample.F, now, query))
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the labels of its alerts: %w", err)
		}
		maps.DeleteFunc(f.labels, func(_, value string) bool { return value == "" }) // which is the same as no label
		f.labels["alertname"], f.labels["severity"] = rule.Name, rule.Severity
		f.annotate = func() (annotations map[string]string) {
			left.spend(func(ctx context.Context) { annotations = expand(ctx, rule.Templates(), own, sample.F, now, query) })
			return annotations
		}
		key := fingerprint(f.labels)
		if seen[key] {
			return nil, fmt.Errorf("two series have the labels %v: the rule's labels must not make them equal", f.labels)
		}
		seen[key] = true
		all[i] = f
	}
	return all, nil
}

// allowance is time for several to spend, one after the other.
type allowance struct {
	ctx  context.Context // of the round that it is for
	time time.Duration
}

// spend calls fn with a context for the time left.
func (a *allowance) spend(fn func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(a.ctx, a.time)
	defer cancel()
	began := time.Now()
	fn(ctx)
	a.time -= time.Since(began)
}

func (e *evaluator) query(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
	if _, err := parse(text); err != nil { // it may be of the database, or of a template
		return nil, err
	}
	ctx, stop := watchMemory(ctx)
	defer stop()
	q, err := e.engine.NewInstantQuery(ctx, e.series, nil, text, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if errors.Is(context.Cause(ctx), errMemory) {
		return nil, errMemory
	}
	var samples promql.ErrTooManySamples
	if errors.As(result.Err, &samples) {
		return nil, fmt.Errorf("it looks at more than %d samples: ask for fewer series, a shorter range or a longer step", maxQuerySamples)
	}
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
