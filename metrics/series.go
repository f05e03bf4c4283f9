package metrics

import (
	"maps"
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"
)

// SeriesType is the type of a [Series].
type SeriesType string

// The types of series. A histogram consists of several series. Their names end in _bucket,
// _sum and _count; all of them only increase.
const (
	GaugeSeries     SeriesType = "gauge"
	CounterSeries   SeriesType = "counter"
	HistogramSeries SeriesType = "histogram"
)

// Series is one value with its name and labels, as Prometheus stores it after a
// scrape. Its labels are not shared.
type Series struct {
	Name   string
	Labels map[string]string // nil if there are none
	Value  float64
	Type   SeriesType
}

// flatten converts families to the series of a scrape. Summaries, and histograms without
// buckets, have only their sum and count.
func flatten(families []*dto.MetricFamily) []Series {
	var all []Series
	for _, family := range families {
		name := family.GetName()
		for _, metric := range family.GetMetric() {
			labels := labelsOf(metric)
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				all = append(all, Series{name, labels, metric.GetCounter().GetValue(), CounterSeries})
			case dto.MetricType_HISTOGRAM:
				all = appendHistogram(all, name, labels, metric.GetHistogram())
			case dto.MetricType_SUMMARY:
				summary := metric.GetSummary()
				all = append(all,
					Series{name + "_sum", labels, summary.GetSampleSum(), CounterSeries},
					Series{name + "_count", maps.Clone(labels), float64(summary.GetSampleCount()), CounterSeries})
			default:
				all = append(all, Series{name, labels, metric.GetGauge().GetValue() + metric.GetUntyped().GetValue(), GaugeSeries})
			}
		}
	}
	return all
}

func appendHistogram(all []Series, name string, labels map[string]string, histogram *dto.Histogram) []Series {
	count := float64(histogram.GetSampleCount())
	bucket := func(bound, value float64) {
		own := maps.Clone(labels)
		if own == nil {
			own = map[string]string{}
		}
		own["le"] = strconv.FormatFloat(bound, 'g', -1, 64)
		all = append(all, Series{name + "_bucket", own, value, HistogramSeries})
	}
	last := 0.0
	for _, b := range histogram.GetBucket() {
		last = b.GetUpperBound()
		bucket(last, float64(b.GetCumulativeCount()))
	}
	if len(histogram.GetBucket()) > 0 && !math.IsInf(last, 1) {
		bucket(math.Inf(1), count)
	}
	return append(all,
		Series{name + "_sum", labels, histogram.GetSampleSum(), HistogramSeries},
		Series{name + "_count", maps.Clone(labels), count, HistogramSeries})
}

func labelsOf(metric *dto.Metric) map[string]string {
	if len(metric.GetLabel()) == 0 {
		return nil
	}
	labels := make(map[string]string, len(metric.GetLabel()))
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}
