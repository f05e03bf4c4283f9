package alerts

import (
	"slices"
	"testing"
)

// TestTraps: what is warned of, and what is not.
func TestTraps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		condition string
		want      []string
	}{
		{"sum(forge_leader_is_leader{role='scheduler'}) == 0", nil},
		{"sum(tenure_leader_is_leader) < 2", nil},
		{"tenure_node_up == 0", nil},
		{"rate(forge_leader_failovers_total[5m]) > 5", []string{
			"rate is per second: > 5 means 1500 in 5m; for that many events write increase(forge_leader_failovers_total[5m]) > 5"}},
		{"1 < sum(irate(tenure_leader_losses_total[90s]))", []string{
			"irate is per second: > 1 means 90 in 1m30s; for that many events write increase(tenure_leader_losses_total[1m30s]) > 1"}},
		{"rate(tenure_leader_failovers_total[5m]) > 0.1", nil},
		{"increase(tenure_leader_failovers_total[1h]) > 5", nil},
		{"tenure_leader_losses_total > 0", []string{
			"tenure_leader_losses_total only grows, so the alert never resolves: compare increase(tenure_leader_losses_total[5m]) instead"}},
		{"sum(tenure_leader_losses_total{role='a'}) >= (3)", []string{
			"tenure_leader_losses_total only grows, so the alert never resolves: compare increase(tenure_leader_losses_total{role=\"a\"}[5m]) instead"}},
		{"tenure_leader_connected == 0", []string{
			"the series of tenure_leader_connected end when no node has them, and then the condition yields nothing and does not fire: " +
				"add \"or absent(tenure_leader_connected)\""}},
		{"tenure_leader_connected == 0 or absent(tenure_leader_connected)", nil},
		{"tenure_leader_trust_remaining_seconds < 1 or vector(1)", nil},
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

func TestRolesIn(t *testing.T) {
	t.Parallel()
	got := rolesIn(`sum(tenure_leader_is_leader{role="a"}) == 0 or x{role=~"b"} or y{role!="c"} or z{role="d"}`)
	if want := []string{"a", "d"}; !slices.Equal(got, want) {
		t.Errorf("the roles are %q", got)
	}
}
