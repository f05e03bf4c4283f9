package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// family is all metrics of one name.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends one metric. The label values are in the order of the labels.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.desc, err)
	}
	to <- metric
}

// families makes the families of one collector. Their names begin with a prefix
// and a word for what they are about.
type families struct {
	prefix, about string
	invalid       error // why there can be none
	made          []*prometheus.Desc
}

func newFamilies(cfg Config, about string) families {
	return families{prefix: cfg.Prefix, about: about, invalid: cfg.Validate()}
}

func (f *families) gauge(name, help string, labels ...string) family {
	return f.family(prometheus.GaugeValue, name, help, labels)
}

// counter makes a family whose name should end in "_total".
func (f *families) counter(name, help string, labels ...string) family {
	return f.family(prometheus.CounterValue, name, help, labels)
}

func (f *families) family(kind prometheus.ValueType, name, help string, labels []string) family {
	desc := prometheus.NewInvalidDesc(f.invalid)
	if f.invalid == nil {
		desc = prometheus.NewDesc(strings.Join([]string{f.prefix, f.about, name}, "_"), help, labels, nil)
	}
	f.made = append(f.made, desc)
	return family{desc, kind}
}

// describe tells a registry of all families.
func (f *families) describe(to chan<- *prometheus.Desc) {
	for _, desc := range f.made {
		to <- desc
	}
}

// number is 1 for true and 0 for false.
func number(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
