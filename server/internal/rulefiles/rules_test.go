package rulefiles

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const deploy = "../../../deploy"

var prefixes = []string{"tenure", "forge"}

func rulesOf(prefix string) string { return deploy + "/prometheus/" + prefix + ".yaml" }

func parseRules(t *testing.T, file string) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	return groups
}

// Prometheus accepts the files, and has nothing to remark on them.
func TestRulesAreRead(t *testing.T) {
	for _, prefix := range prefixes {
		groups := parseRules(t, rulesOf(prefix))
		if len(groups.Groups) != 2 || len(groups.Groups[0].Rules) < 5 || len(groups.Groups[1].Rules) < 10 {
			t.Errorf("%s: read %+v", prefix, groups)
		}
	}
}

// Every query of the dashboard is one.
func TestDashboardIsRead(t *testing.T) {
	text, err := os.ReadFile(deploy + "/grafana/tenure.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("the dashboard is no JSON")
	}
	parse, found := parser.NewParser(parser.Options{}), 0
	variables := strings.NewReplacer("${prefix}", "forge", "$__rate_interval", "1m", "$role", ".*")
	for _, query := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1) {
		var expression string
		if err := json.Unmarshal(query[1], &expression); err != nil {
			t.Fatal(err)
		}
		if _, err := parse.ParseExpr(variables.Replace(expression)); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		found++
	}
	if found < 60 {
		t.Errorf("%d queries: the test looks in the wrong place", found)
	}
}

// situation is what nodes say, every 15 s from the start, and which alerts fire
// ten minutes later. Series begin with @ for the prefix.
type situation struct {
	series string
	fires  []string
}

// well is a healthy cluster: a leads r, b stands by, and all work continues.
const well = `
	@leader_is_leader{role="r",instance="a"} 1x100
	@leader_is_leader{role="r",instance="b"} 0x100
	@leader_is_leader{role="",instance="b"} 0x100
	@leader_failovers_total{role="r",instance="a"} 0+0x100
	@leader_losses_total{role="r",instance="a"} 3x100
	@leader_roles_led{instance="a"} 1x100
	@leader_roles_led{instance="b"} 0x100
	@leader_connected{instance="a"} 1x100
	@leader_trust_remaining_seconds{instance="a"} 9 7 5.7 9 7 5.7 9 7 5.7 9 7 5.7 9 7 5.7 9 7 5.7 9x80
	@leader_trust_window_seconds{instance="a"} 9x100
	@leader_callback_oldest_seconds{instance="a"} 0x100
	@cluster_nodes{status="active",instance="a"} 2x100
	@cluster_nodes{status="dead",instance="a"} 4x100
	@cluster_outages_total{instance="a"} 2x100
	@work_read_timestamp_seconds{instance="a"} 0+15x100
	@processor_lag_seconds{processor="p",instance="a"} 30x100
	@processor_lag_age_seconds{processor="p",instance="a"} 12x100
	@processor_stuck_seconds{processor="p",instance="a"} 0x100
	@processor_held_events{processor="p",instance="a"} 0x100
	@processor_horizon_age_seconds{instance="a"} 0+15x100
	@processor_led{processor="p",instance="a"} 1x100
	@processor_status{processor="p",status="failed",instance="a"} 0x100
	@cron_loaded{schedule="s",instance="a"} 1x100
	@cron_paused{schedule="s",instance="a"} 0x100
	@cron_missed_ticks{schedule="s",instance="a"} 4x100
	@cron_failures_total{schedule="s",instance="a"} 2x100
	@cron_errors{schedule="s",instance="a"} 0x100
	@cron_overdue_seconds{schedule="s",instance="a"} 0x100
	@cron_ahead_seconds{schedule="s",instance="a"} 0x100
	@retention_consecutive_errors{rows="runs",instance="a"} 0x100
	@retention_late_seconds{rows="runs",instance="a"} 0x100`

// but replaces series of a healthy cluster, each given by its whole line.
func but(lines ...string) string {
	text := well
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		text = regexp.MustCompile(regexp.QuoteMeta(name)+` [^\n]*`).ReplaceAllLiteralString(text, line)
	}
	return text
}

var situations = map[string]situation{
	"all is well": {well, nil},
	"no node leads": {
		but(`@leader_is_leader{role="r",instance="a"} 1x20 0x80`, `@leader_roles_led{instance="a"} 1x20 0x80`),
		[]string{"TenureNobodyLeads"},
	},
	"two lead":        {but(`@leader_is_leader{role="r",instance="b"} 1x100`), []string{"TenureTwoLead"}},
	"nothing scraped": {`other 1x100`, []string{"TenureNotScraped"}},
	"leadership moves": {
		but(`@leader_failovers_total{role="r",instance="a"} 0+0.5x100`), []string{"TenureFlapping"},
	},
	"a role was lost": {
		but(`@leader_losses_total{role="r",instance="a"} 3x20 4x80`), []string{"TenureLeadersLose"},
	},
	"a leader cannot renew": {
		but(`@leader_trust_remaining_seconds{instance="a"} 2x100`), []string{"TenureTrustLow"},
	},
	"a standby cannot renew": {
		but(`@leader_trust_remaining_seconds{instance="a"} 2x100`, `@leader_roles_led{instance="a"} 0x100`), nil,
	},
	"a node has no session":  {but(`@leader_connected{instance="a"} 0x100`), []string{"TenureDisconnected"}},
	"a node died":            {but(`@cluster_nodes{status="dead",instance="a"} 4x20 5x80`), []string{"TenureNodeDied"}},
	"a node was forgotten":   {but(`@cluster_nodes{status="dead",instance="a"} 4x20 3x80`), nil},
	"one node is left":       {but(`@cluster_nodes{status="active",instance="a"} 1x100`), []string{"TenureNoStandby"}},
	"an outage ended":        {but(`@cluster_outages_total{instance="a"} 2x20 3x80`), []string{"TenureDatabaseOutage"}},
	"a callback hangs":       {but(`@leader_callback_oldest_seconds{instance="a"} 0+15x100`), []string{"TenureCallbackHangs"}},
	"a processor lags":       {but(`@processor_lag_seconds{processor="p",instance="a"} 0+15x100`), []string{"TenureProcessorLags"}},
	"the horizon stalls":     {but(`@processor_held_events{processor="p",instance="a"} 7x100`), []string{"TenureHorizonStalled"}},
	"a processor failed":     {but(`@processor_status{processor="p",status="failed",instance="a"} 1x100`), []string{"TenureProcessorFails"}},
	"a processor is stuck":   {but(`@processor_stuck_seconds{processor="p",instance="a"} 0+15x100`), []string{"TenureProcessorStuck"}},
	"a lag is old":           {but(`@processor_lag_age_seconds{processor="p",instance="a"} 0+15x100`), []string{"TenureProcessorUnmeasured"}},
	"a processor stands":     {but(`@processor_led{processor="p",instance="a"} 0x100`), []string{"TenureProcessorNotLed"}},
	"runs fail":              {but(`@cron_failures_total{schedule="s",instance="a"} 2x20 3x80`), []string{"TenureScheduleFails"}},
	"ticks are missed":       {but(`@cron_missed_ticks{schedule="s",instance="a"} 4x20 5x80`), []string{"TenureScheduleMissed"}},
	"a schedule stands":      {but(`@cron_loaded{schedule="s",instance="a"} 0x100`), []string{"TenureScheduleNotLed"}},
	"a schedule is paused":   {but(`@cron_loaded{schedule="s",instance="a"} 0x100`, `@cron_paused{schedule="s",instance="a"} 1x100`), nil},
	"a leader is stuck":      {but(`@cron_errors{schedule="s",instance="a"} 7x100`), []string{"TenureScheduleStuck"}},
	"a tick waits":           {but(`@cron_overdue_seconds{schedule="s",instance="a"} 70+15x100`), []string{"TenureScheduleStuck"}},
	"the clock was set back": {but(`@cron_ahead_seconds{schedule="s",instance="a"} 3600x100`), []string{"TenureScheduleAhead"}},
	"retention fails":        {but(`@retention_consecutive_errors{rows="runs",instance="a"} 1x100`), []string{"TenureRetentionFails"}},
	"retention is late":      {but(`@retention_late_seconds{rows="runs",instance="a"} 1x100`), []string{"TenureRetentionLate"}},
	"figures are old":        {but(`@work_read_timestamp_seconds{instance="a"} 15x100`), []string{"TenureFiguresOld"}},
}

// In every situation the alerts that should fire do, and no others, by
// Prometheus's own engine; and every alert fires in one of them.
func TestAlertsFireInTheirSituation(t *testing.T) {
	fired := map[string]bool{}
	for name, s := range situations {
		t.Run(name, func(t *testing.T) { check(t, "tenure", s) })
		for _, alert := range s.fires {
			fired[alert] = true
		}
	}
	for _, rule := range parseRules(t, rulesOf("tenure")).Groups[1].Rules {
		if !fired[rule.Alert] {
			t.Errorf("no situation lets %s fire", rule.Alert)
		}
	}
}

// The rules are the same for the other prefix.
func TestAlertsFireForTheOtherPrefix(t *testing.T) {
	for _, name := range []string{"all is well", "no node leads"} {
		check(t, "forge", situations[name])
	}
}

func check(t *testing.T, prefix string, s situation) {
	t.Helper()
	if got := firing(t, rulesOf(prefix), strings.ReplaceAll(s.series, "@", prefix+"_")); !slices.Equal(got, s.fires) {
		t.Errorf("%q fire; want %q", got, s.fires)
	}
}

// The rules that the source document gives work as their author meant them,
// given that a candidate is scraped.
func TestRulesOfTheSourceFire(t *testing.T) {
	file := t.TempDir() + "/source.yaml"
	text := `
groups:
  - name: source
    rules:
      - alert: no_scheduler_leader
        expr: sum(forge_leader_is_leader{role='scheduler'}) == 0
        for: 30s
      - alert: frequent_failovers
        expr: rate(forge_leader_failovers_total[5m]) > 5
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const candidates = `
		forge_leader_is_leader{role="scheduler",instance="b"} 0x100
		forge_leader_is_leader{role="scheduler",instance="a"} `
	for name, s := range map[string]situation{
		"led":          {candidates + "1x100", nil},
		"vacant":       {candidates + "1x30 0x70", []string{"no_scheduler_leader"}},
		"100 a second": {candidates + "1x100\nforge_leader_failovers_total{role=\"scheduler\"} 0+1500x100", []string{"frequent_failovers"}},
		"one a minute": {candidates + "1x100\nforge_leader_failovers_total{role=\"scheduler\"} 0+0.25x100", nil},
	} {
		if got := firing(t, file, s.series); !slices.Equal(got, s.fires) {
			t.Errorf("%s: %q fire; want %q", name, got, s.fires)
		}
	}
}
