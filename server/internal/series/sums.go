package series

import (
	"maps"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/exactly-one/tenure/metrics"
)

// departed is the sum of gone nodes' counters, of one name and one set of labels. Without
// it, a sum would fall whenever a node goes.
type departed struct {
	labels labels.Labels
	kind   metrics.SeriesType
	total  float64
}

func withoutNode(l labels.Labels) labels.Labels {
	return labels.NewBuilder(l).Del(nodeLabel, nodeNameLabel).Labels()
}

// combination is how the values of several nodes become one.
type combination func(a, b float64) float64

func add(a, b float64) float64 { return a + b }

// combinationOf is how nodes' values of a metric become the cluster's. Metrics of the
// whole cluster, reported by every node, are not added up; nor are shares of a whole.
func combinationOf(name string) combination {
	rest := strings.TrimPrefix(name, canonicalPrefix)
	switch {
	case rest == "leader_trust_remaining_seconds":
		return math.Min
	case strings.HasPrefix(rest, "cluster_"), strings.HasSuffix(rest, "_ratio"), rest == "node_load":
		return math.Max
	default:
		return add
	}
}

// Gather returns the series of the whole cluster, under the configured prefix: the series
// of all nodes put together, without the labels of nodes, and tenure_node_up and
// tenure_node_reporting of each node. It implements [prometheus.Gatherer], and never
// fails.
func (s *Store) Gather() ([]*dto.MetricFamily, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	families := map[string]*family{}
	for _, one := range s.series {
		if one.over() {
			continue
		}
		l := one.labels
		if name := l.Get(model.MetricNameLabel); name != nodeUpMetric && name != nodeReportingMetric {
			l = withoutNode(l)
		}
		s.familyLocked(families, l, one.kind).put(l, one.last.value)
	}
	for _, gone := range s.departed {
		s.familyLocked(families, gone.labels, gone.kind).put(gone.labels, gone.total)
	}
	var all []*dto.MetricFamily
	for _, name := range slices.Sorted(maps.Keys(families)) {
		all = append(all, families[name].encode(name))
	}
	return all, nil
}

// family is all metrics of one name.
type family struct {
	kind    metrics.SeriesType
	combine combination
	values  map[string]float64
	labels  map[string]labels.Labels
}

func (s *Store) familyLocked(families map[string]*family, l labels.Labels, kind metrics.SeriesType) *family {
	kept := l.Get(model.MetricNameLabel)
	name := s.prefixes.own(kept)
	if families[name] == nil {
		families[name] = &family{kind, combinationOf(kept), map[string]float64{}, map[string]labels.Labels{}}
	}
	return families[name]
}

func (f *family) put(l labels.Labels, value float64) {
	key := string(l.Bytes(nil))
	if present, ok := f.values[key]; ok {
		value = f.combine(present, value)
	}
	f.values[key], f.labels[key] = value, l
}

func (f *family) encode(name string) *dto.MetricFamily {
	kind := dto.MetricType_UNTYPED // of the parts of a histogram
	switch f.kind {
	case metrics.GaugeSeries:
		kind = dto.MetricType_GAUGE
	case metrics.CounterSeries:
		kind = dto.MetricType_COUNTER
	}
	encoded := &dto.MetricFamily{Name: &name, Type: &kind}
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		value, metric := f.values[key], &dto.Metric{}
		f.labels[key].Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				metric.Label = append(metric.Label, &dto.LabelPair{Name: &l.Name, Value: &l.Value})
			}
		})
		switch kind {
		case dto.MetricType_GAUGE:
			metric.Gauge = &dto.Gauge{Value: &value}
		case dto.MetricType_COUNTER:
			metric.Counter = &dto.Counter{Value: &value}
		default:
			metric.Untyped = &dto.Untyped{Value: &value}
		}
		encoded.Metric = append(encoded.Metric, metric)
	}
	return encoded
}
