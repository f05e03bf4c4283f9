package rulefiles

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// step is the time between two scrapes, and two evaluations.
const step = 15 * time.Second

// memory is series in memory, from the start of time on.
type memory map[uint64]*stored

type stored struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is one value at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func (m memory) add(of labels.Labels, at time.Duration, value float64) {
	one := m[of.Hash()]
	if one == nil {
		one = &stored{labels: of}
		m[of.Hash()] = one
	}
	one.samples = append(one.samples, sample{at.Milliseconds(), value})
}

// load reads series as Prometheus's own tests write them: one in a line, its
// values one step apart.
func load(t *testing.T, text string) memory {
	t.Helper()
	m, parse := memory{}, parser.NewParser(parser.Options{})
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		of, values, err := parse.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for i, value := range values {
			m.add(of, time.Duration(i)*step, value.Value)
		}
	}
	return m
}

func (m memory) query(t *testing.T, engine *promql.Engine, expression string, at time.Duration) promql.Vector {
	t.Helper()
	source := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: m.find}}
	query, err := engine.NewInstantQuery(t.Context(), source, nil, expression, time.Unix(0, 0).Add(at))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return slices.Clone(vector)
}

func (m memory) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range m {
		fits := true
		for _, matcher := range matchers {
			fits = fits && matcher.Matches(s.labels.Get(matcher.Name))
		}
		if fits {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return &set{storage.EmptySeriesSet(), found, 0}
}

// set goes through series, and has nothing else to say.
type set struct {
	storage.SeriesSet
	series []storage.Series
	next   int
}

func (s *set) Next() bool         { s.next++; return s.next <= len(s.series) }
func (s *set) At() storage.Series { return s.series[s.next-1] }

// firing evaluates the rules of a file every step for ten minutes, in their
// order, and returns the alerts that fire then.
func firing(t *testing.T, file, series string) []string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	defer engine.Close()
	groups, all := parseRules(t, file).Groups, load(t, series)
	since := map[string]time.Duration{} // by alert and labels: since when its condition holds
	var names []string
	for at := time.Duration(0); at <= 10*time.Minute; at += step {
		names = nil
		for _, group := range groups {
			for _, rule := range group.Rules {
				result := all.query(t, engine, rule.Expr, at)
				if rule.Record != "" {
					for _, one := range result {
						all.add(labels.NewBuilder(one.Metric).Set(model.MetricNameLabel, rule.Record).Labels(), at, one.F)
					}
				} else if pends(since, rule, result, at) {
					names = append(names, rule.Alert)
				}
			}
		}
	}
	return names
}

// pends notes since when the condition of an alert holds, and reports whether
// that is long enough.
func pends(since map[string]time.Duration, rule rulefmt.Rule, result promql.Vector, at time.Duration) (fires bool) {
	holds := map[string]bool{}
	for _, one := range result {
		key := rule.Alert + one.Metric.String()
		holds[key] = true
		if _, before := since[key]; !before {
			since[key] = at
		}
		fires = fires || at-since[key] >= time.Duration(rule.For)
	}
	for key := range since {
		if strings.HasPrefix(key, rule.Alert+"{") && !holds[key] {
			delete(since, key)
		}
	}
	return fires
}
