package metrics_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/tenuretest"
)

// A scrape has exactly the defined metrics, and they follow the conventions.
func TestDefinitionsMatchScrape(t *testing.T) {
	w := newWorld(t)
	w.fill()
	node := open(t, tenuretest.NewDatabase(), "a")
	defer closeNode(t, node)
	lead(t, node, "r")
	collectors := func(config metrics.Config) []prometheus.Collector {
		work := metrics.NewWork(w.Backend, w.Pool, config, metrics.WorkConfig{})
		reading(t, work, cmp.Or(config.Prefix, "tenure"))
		return []prometheus.Collector{
			metrics.NewElections(node, config), metrics.NewBackend(w.Backend, config), metrics.NewCluster(newFixed(), config), work,
		}
	}
	for _, c := range collectors(metrics.Config{Prefix: "forge"}) {
		lint(t, c)
	}
	present := collectors(metrics.Config{})
	for _, c := range present {
		lint(t, c)
	}
	scraped := scrape(t, present...)
	for _, definition := range metrics.Definitions() {
		family := scraped["tenure_"+definition.Name]
		if family == nil {
			t.Errorf("%s was not scraped", definition.Name)
			continue
		}
		delete(scraped, "tenure_"+definition.Name)
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		defined := slices.Sorted(slices.Values(definition.Labels))
		slices.Sort(labels)
		if kind := strings.ToLower(family.GetType().String()); kind != string(definition.Type) ||
			family.GetHelp() != definition.Help || !slices.Equal(labels, defined) {
			t.Errorf("%s is a %s with the labels %q, %q; defined: %+v", definition.Name, kind, labels, family.GetHelp(), definition)
		}
	}
	for name := range scraped {
		t.Errorf("%s is scraped and not defined", name)
	}
}
