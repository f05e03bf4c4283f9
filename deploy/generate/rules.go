package main

import (
	"fmt"
	"strings"
)

// rule is one recording or alerting rule. Expressions name metrics without the
// prefix, behind a @, as in @leader_is_leader.
type rule struct {
	record string // the name of the new series, or
	alert  string // of the alert

	expression string
	lasting    string // for how long before it fires; of alerts
	severity   string
	summary    string
	advice     string
}

// recordings are sums that dashboards and alerts ask for again and again.
var recordings = []rule{
	{record: "role:@leader_is_leader:sum", expression: `sum by (role) (@leader_is_leader{role!=""})`},
	{record: "role:@leader_failovers:increase15m", expression: `sum by (role) (increase(@leader_failovers_total{role!=""}[15m]))`},
	{record: "@leader_losses:increase15m", expression: `sum(increase(@leader_losses_total[15m]))`},
	{
		record:     "@leader_vacancy_seconds:p99_1h",
		expression: `histogram_quantile(0.99, sum by (le) (increase(@leader_vacancy_seconds_bucket[1h])))`,
	},
	{
		record:     "@leader_heartbeat_duration_seconds:p99_5m",
		expression: `histogram_quantile(0.99, sum by (le) (rate(@leader_heartbeat_duration_seconds_bucket[5m])))`,
	},
	{record: "status:@cluster_nodes:max", expression: `max by (status) (@cluster_nodes)`},
	{record: "processor:@processor_lag_seconds:max", expression: `max by (processor) (@processor_lag_seconds)`},
}

// renderRules writes the rules for metrics with a prefix, as Prometheus reads
// them.
func renderRules(prefix string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "# Written by deploy/generate. Rules for metrics with the prefix %s.\ngroups:\n", prefix)
	for _, group := range []struct {
		name  string
		rules []rule
	}{{"recordings", recordings}, {"alerts", alerts}} {
		fmt.Fprintf(&text, "  - name: %s_%s\n    rules:\n", prefix, group.name)
		for _, r := range group.rules {
			r.write(&text, prefix)
		}
	}
	return []byte(text.String())
}

func (r rule) write(text *strings.Builder, prefix string) {
	line := func(indent int, key, value string) {
		fmt.Fprintf(text, "%s%s: %s\n", strings.Repeat(" ", indent), key, quoted(named(value, prefix)))
	}
	if r.record != "" {
		line(6, "- record", r.record)
		line(8, "expr", r.expression)
		return
	}
	line(6, "- alert", r.alert)
	line(8, "expr", r.expression)
	if r.lasting != "" {
		line(8, "for", r.lasting)
	}
	text.WriteString("        labels:\n")
	line(10, "severity", r.severity)
	text.WriteString("        annotations:\n")
	line(10, "summary", r.summary)
	line(10, "description", r.advice)
}

// named puts the prefix before the names of metrics.
func named(text, prefix string) string { return strings.ReplaceAll(text, "@", prefix+"_") }

// quoted is a string as YAML has it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
