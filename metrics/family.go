package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
)

// family is all metrics with one name.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends one metric. The label values are in the order of the labels.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(f.desc, f.kind, value, printableLabels(labels)...)
	f.emit(to, metric, err)
}

// sendDurations sends one histogram in seconds.
func (f family) sendDurations(to chan<- prometheus.Metric, value tenure.Histogram) {
	buckets := make(map[float64]uint64, len(value.Buckets))
	for bound, count := range value.Buckets {
		buckets[bound.Seconds()] = count
	}
	metric, err := prometheus.NewConstHistogram(f.desc, value.Count, value.Sum.Seconds(), buckets)
	f.emit(to, metric, err)
}

// printableLabels makes external names, such as roles and processors, printable
// as label values.
func printableLabels(values []string) []string {
	shown := make([]string, len(values))
	for i, value := range values {
		shown[i] = printable.Label(value)
	}
	return shown
}

func (f family) emit(to chan<- prometheus.Metric, metric prometheus.Metric, err error) {
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.desc, err)
	}
	to <- metric
}

// Definition describes a metric.
type Definition struct {
	Name   string // without its prefix, for example leader_is_leader
	Type   SeriesType
	Help   string
	Labels []string // not ordered
}

// families creates the families of one collector. Their names begin with a
// prefix and a word for their subject.
type families struct {
	prefix, about string
	invalid       error // why the configuration is invalid
	descriptions  []*prometheus.Desc
	made          []Definition
}

func newFamilies(cfg Config, about string) families {
	return families{prefix: cfg.Prefix, about: about, invalid: cfg.Validate()}
}

func (f *families) gauge(name, help string, labels ...string) family {
	return family{f.define(GaugeSeries, name, help, labels), prometheus.GaugeValue}
}

// counter creates a family. Its name should end in "_total".
func (f *families) counter(name, help string, labels ...string) family {
	return family{f.define(CounterSeries, name, help, labels), prometheus.CounterValue}
}

// histogram creates a family of durations. Its name should end in "_seconds".
func (f *families) histogram(name, help string) family {
	return family{f.define(HistogramSeries, name, help, nil), prometheus.UntypedValue}
}

func (f *families) define(kind SeriesType, name, help string, labels []string) *prometheus.Desc {
	desc, name := prometheus.NewInvalidDesc(f.invalid), f.about+"_"+name
	if f.invalid == nil {
		desc = prometheus.NewDesc(f.prefix+"_"+name, help, labels, nil)
	}
	f.descriptions = append(f.descriptions, desc)
	f.made = append(f.made, Definition{name, kind, help, labels})
	return desc
}

// describe sends the descriptions of all families.
func (f *families) describe(to chan<- *prometheus.Desc) {
	for _, desc := range f.descriptions {
		to <- desc
	}
}

// boolValue returns 1 for true and 0 for false.
func boolValue(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// seconds returns a time as Unix seconds, 0 for the zero time.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixNano()) / float64(time.Second)
}
