package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/metrics"
)

// width is that of Grafana's grid.
const width = 24

// grid places panels, from left to right and from top to bottom, and numbers
// them.
type grid struct{ x, y, height, count int }

func (g *grid) place(p *panel, w, h int) {
	if g.x+w > width {
		g.x, g.y, g.height = 0, g.y+g.height, 0
	}
	g.count++
	p.ID, p.GridPos = g.count, position{h, w, g.x, g.y}
	g.x += w
	g.height = max(g.height, h)
}

// overview are the panels for a glance.
func (g *grid) overview() []panel {
	red, green := "red", "green"
	one := func(title, expression, unit, below, from string, limit float64) panel {
		p := panel{
			Type: "stat", Title: title, Datasource: chosen,
			FieldConfig: &fieldConfig{fieldDefaults{Unit: unit, Thresholds: &thresholds{"absolute", []step{{below, nil}, {from, &limit}}}}, []struct{}{}},
			Options:     json.RawMessage(`{"colorMode": "background", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}`),
			Targets:     targets(expression, ""),
		}
		g.place(&p, 4, 4)
		return p
	}
	all := []panel{
		one("Roles that are led", `sum(@leader_roles_led)`, "none", red, green, 1),
		one("Roles that no node leads", `count(sum by (role) (@leader_is_leader{role!=""}) == 0) or vector(0)`, "none", green, red, 1),
		one("Active nodes", `max(@cluster_nodes{status="active"}) or count(@leader_connected == 1)`, "none", red, green, 2),
		one("Failovers in an hour", `sum(increase(@leader_failovers_total[1h]))`, "none", green, red, 5),
		one("Slowest failovers in an hour", `histogram_quantile(0.99, sum by (le) (increase(@leader_vacancy_seconds_bucket[1h])))`, "s", green, red, 10),
		one("Lowest trust", `min(@leader_trust_remaining_seconds / @leader_trust_window_seconds)`, "percentunit", red, green, 1.0/3),
	}
	leaders := panel{
		Type: "state-timeline", Title: "Who leads", Description: "One line for each role and node that leads it. A gap is a vacancy.",
		Datasource: chosen, Targets: targets(`@leader_is_leader{role=~"$role",role!=""} == 1`, "{{role}}: {{instance}}"),
		Options: json.RawMessage(`{"mergeValues": true, "showValue": "never", "legend": {"showLegend": false}}`),
	}
	g.place(&leaders, 16, 10)
	table := panel{
		Type: "table", Title: "Leaders", Description: "The present terms.", Datasource: chosen,
		Targets: targets(`@leader_term{role=~"$role"} > 0`, ""),
	}
	table.Targets[0].Instant, table.Targets[0].Format = true, "table"
	g.place(&table, 8, 10)
	return append(all, leaders, table)
}

// panelOf draws one metric over time.
func (g *grid) panelOf(d metrics.Definition) panel {
	p := panel{
		Type: "timeseries", Title: words(d.Name), Description: d.Help, Datasource: chosen,
		FieldConfig: &fieldConfig{fieldDefaults{Unit: unitOf(d)}, []struct{}{}},
	}
	switch by := strings.Join(d.Labels, ", "); {
	case d.Type == metrics.HistogramSeries:
		for _, quantile := range []string{"0.5", "0.9", "0.99"} {
			p.Targets = append(p.Targets, targets(
				"histogram_quantile("+quantile+", sum by (le) (rate(@"+d.Name+"_bucket"+selection(d)+"[$__rate_interval])))", "quantile "+quantile)...)
		}
	case d.Type == metrics.CounterSeries && isOfAll(d):
		p.Targets = targets("max by ("+by+") (rate(@"+d.Name+"[$__rate_interval]))", legend(d.Labels))
	case d.Type == metrics.CounterSeries:
		p.Targets = targets("sum by ("+by+") (rate(@"+d.Name+selection(d)+"[$__rate_interval]))", legend(d.Labels))
	case strings.HasSuffix(d.Name, "_timestamp_seconds"):
		p.Targets = targets("max by ("+by+") (@"+d.Name+" > 0) - time()", legend(d.Labels))
	case isOfAll(d):
		p.Targets = targets("max by ("+by+") (@"+d.Name+")", legend(d.Labels))
	default:
		p.Targets = targets("@"+d.Name+selection(d), legend(append(slices.Clone(d.Labels), "instance")))
	}
	for i := range p.Targets {
		p.Targets[i].RefID = string(rune('A' + i))
	}
	g.place(&p, 8, 7)
	return p
}

// isOfAll reports whether every process reports the same value of a metric.
func isOfAll(d metrics.Definition) bool {
	word, _, _ := strings.Cut(d.Name, "_")
	return slices.Contains([]string{"cluster", "processor", "cron", "retention", "work"}, word)
}

// selection keeps to the roles that people chose.
func selection(d metrics.Definition) string {
	if slices.Contains(d.Labels, "role") {
		return `{role=~"$role"}`
	}
	return ""
}

func unitOf(d metrics.Definition) string {
	switch {
	case strings.HasSuffix(d.Name, "_seconds"):
		return "s"
	case strings.HasSuffix(d.Name, "_ratio"):
		return "percentunit"
	case d.Type == metrics.CounterSeries:
		return "ops"
	}
	return "short"
}

func legend(labels []string) string {
	named := make([]string, len(labels))
	for i, label := range labels {
		named[i] = "{{" + label + "}}"
	}
	return strings.Join(named, " ")
}

func targets(expression, legend string) []target {
	return []target{{RefID: "A", Expression: strings.ReplaceAll(expression, "@", prefixVariable+"_"), LegendFormat: legend}}
}
