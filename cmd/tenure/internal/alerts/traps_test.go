package alerts

import (
	"slices"
	"testing"
)

const always = "the condition filters no series, so the alert fires for every value: add a comparison"

// TestTrapsAreWarnedOf: what is warned of, and what is not.
func TestTrapsAreWarnedOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		condition string
		want      []string
	}{
		{"sum(forge_leader_is_leader{role='scheduler'}) == 0", nil},
		{"sum(tenure_leader_is_leader) < 2", nil},
		{"tenure_node_up == 0", nil},
		{"tenure_node_up{node_name='a'} == 0", nil},
		{"tenure_node_reporting == 0", nil},
		{"tenure_node_up{node='5f3c'} == 0", []string{"tenure_node_up has no label node, since a restart changes the id: select by node_name"}},
		{"rate(forge_leader_failovers_total[5m]) > 5", []string{
			"rate is per second: > 5 means 1500 in 5m; for that many events write sum by (role) (increase(forge_leader_failovers_total[5m])) > 5"}},
		{"1 < sum(irate(tenure_leader_losses_total[90s]))", []string{
			"irate is per second: > 1 means 90 in 1m30s; for that many events write increase(tenure_leader_losses_total[1m30s]) > 1"}},
		{"rate(app_requests_total[5m]) > 5", []string{
			"rate is per second: > 5 means 1500 in 5m; for that many events write sum(increase(app_requests_total[5m])) > 5"}},
		{"rate(tenure_leader_failovers_total[5m]) > 0.1", nil},
		{"increase(tenure_leader_failovers_total[1h]) > 5", []string{
			"each process has its own counter: for the total of all processes write sum by (role) (increase(tenure_leader_failovers_total[1h])) > 5"}},
		{"sum by (role) (increase(tenure_leader_failovers_total[1h])) > 5", nil},
		{"increase(tenure_leader_losses_total[5m]) > 0", nil},
		{"increase(app_requests_total[1h]) > 5", nil},
		{"tenure_leader_losses_total > 0", []string{
			"tenure_leader_losses_total only increases, so the alert does not resolve before the process ends: " +
				"compare increase(tenure_leader_losses_total[5m]) instead"}},
		{"sum(tenure_leader_losses_total{role='a'}) >= (3)", []string{
			"tenure_leader_losses_total only increases, so the alert does not resolve before the process ends: " +
				"compare increase(tenure_leader_losses_total{role=\"a\"}[5m]) instead"}},
		{"sum(tenure_leader_connected) == 0", []string{
			"the series of tenure_leader_connected end when no node has them, and then the condition yields nothing and does not fire: " +
				"add \"or absent(tenure_leader_connected)\""}},
		{"tenure_leader_connected == 0", []string{
			"the series of tenure_leader_connected end when no node has them, and then the condition yields nothing and does not fire: " +
				"add \"or absent(tenure_leader_connected)\"; that a node is gone, tenure_node_up == 0 finds"}},
		{"tenure_leader_connected == 0 or absent(tenure_leader_connected)", nil},
		{"tenure_leader_is_leader{role='r',node_name='a'} == 0", []string{
			"the series of tenure_leader_is_leader end when no node has them, and then the condition yields nothing and does not fire: " +
				"add \"or absent(tenure_leader_is_leader{node_name=\"a\",role=\"r\"})\"; that a node is gone, tenure_node_up == 0 finds"}},
		{"count(tenure_leader_is_leader{role='r'} == 1) == 0", []string{
			"count(tenure_leader_is_leader{role=\"r\"} == 1) of no series is no series and not 0, so the condition does not fire: " +
				"write (count(tenure_leader_is_leader{role=\"r\"} == 1) or vector(0)) == 0"}},
		{"(count(tenure_leader_is_leader{role='r'} == 1) or vector(0)) == 0", nil},
		{"count(app_up) < 2", []string{
			"count(app_up) of no series is no series and not 0, so the condition does not fire: write (count(app_up) or vector(0)) < 2"}},
		{"count(tenure_leader_is_leader{role='r'}) < 1", []string{
			"tenure_leader_is_leader has series of 0 for every role and node, which count counts: compare sum(tenure_leader_is_leader{role=\"r\"})"}},
		{"count(app_up == 1) > 2", nil},
		{"absent(forge_leader_is_leader{role='r'})", []string{
			"forge_leader_is_leader has a series of 0 where no node leads, so it is never absent: write sum(forge_leader_is_leader{role=\"r\"}) == 0"}},
		{"absent(tenure_leader_is_leader{role='r',node_name='a'})", nil},
		{"absent(tenure_leader_connected)", nil},
		{"tenure_leader_roles_led > bool 5", []string{
			"with bool a comparison yields 0 or 1 and filters nothing, so the alert always fires: remove bool"}},
		{"sum(tenure_leader_roles_led > bool 5) > 1", nil},
		{"tenure_leader_connected", []string{always}},
		{"vector(1)", []string{always}},
		{"scalar(tenure_leader_roles_led)", []string{always}},
		{"tenure_leader_trust_remaining_seconds < 1 or vector(1)", []string{always}},
		{"-(tenure_leader_roles_led > 5) * 2", nil},
		{"max_over_time((tenure_leader_roles_led > 5)[10m:1m])", nil},
		{"app_a unless app_b", nil},
		{"increase(tenure_leader_roles_led[5m]) > 0", []string{
			"tenure_leader_roles_led is not a counter, and each decrease would count as a restart: use delta or changes instead of increase"}},
		{"delta(tenure_leader_roles_led[5m]) > 0", nil},
		{"resets(tenure_leader_failovers_total[1h]) > 0", []string{
			"a process that restarts has separate series, so resets(tenure_leader_failovers_total[1h]) is always 0"}},
		{"increase(sum by (role) (tenure_leader_failovers_total)[5m:10s]) > 5", []string{
			"a sum of counters decreases when a process ends, which increase counts as a restart of all: " +
				"sum over increase(tenure_leader_failovers_total[5m]) instead"}},
		{"increase(tenure_leader_failovers_total[5m:10s]) > 0", nil},
		{"sum(increase(tenure_leader_failovers_total[2d])) > 5", []string{"samples are kept for 1d: tenure_leader_failovers_total[2d] sees no more"}},
		{"sum(increase(tenure_leader_failovers_total[12h] offset 13h)) > 5", []string{
			"samples are kept for 1d: tenure_leader_failovers_total[12h] offset 13h sees no more"}},
		{"max_over_time(app_x[7d:1m]) > 5", []string{"samples are kept for 1d: app_x[1w:1m] sees no more"}},
		{"rate(app_x_total[10s]) > 0", []string{"rate needs two samples, which [10s] often does not contain: use at least 30s"}},
		{"rate(app_x_total[1m]) > 0", nil},
		{"rate(app_x_total[1m] offset 2h) > 0", []string{"rate needs two samples, which [1m] often does not contain: use at least 3m"}},
		{"rate(app_x_total[5m] offset 7h) > 0", []string{"rate needs two samples, which [5m] often does not contain: use at least 15m"}},
		{"max_over_time(app_x[10s]) > 0", nil},
		{"tenure_leader_connectd > 0", []string{"there is no metric tenure_leader_connectd; did you mean tenure_leader_connected?"}},
		{"shop_something_else_entirely > 0", []string{"there is no metric shop_something_else_entirely"}},
		{"up > 0", nil},
		{"sum(", nil},
	} {
		if got := Traps(test.condition, "shop"); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%q\nwant:\n%q", test.condition, got, test.want)
		}
	}
}

// A rule is about a role if its condition names no other.
func TestRuleIsAboutItsOnlyRole(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		`sum(x{role="a"}) == 0`:               "a",
		`x{role="a"} > 0 and y{role="a"} < 1`: "a",
		`x{role="a"} > 0 and y{role="b"} < 1`: "",
		`x{role=~"a"} > 0`:                    "",
		`x{role=`:                             "",
	} {
		if got := (Rule{Condition: condition}).Role(); got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}

func TestRolesInFindsNamedRoles(t *testing.T) {
	t.Parallel()
	got := rolesIn(`sum(tenure_leader_is_leader{role="a"}) == 0 or x{role=~"b"} or y{role!="c"} or z{role="d"}`)
	if want := []string{"a", "d"}; !slices.Equal(got, want) {
		t.Errorf("the roles are %q", got)
	}
}
