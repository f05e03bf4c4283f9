package cluster

import "github.com/exactly-one/tenure"

// Roles of which a cluster has exactly one leader. Their lock keys are derived
// from their names, as those of other roles.
var (
	SchedulerRole         = tenure.NamedRole("scheduler")
	MetricsAggregatorRole = tenure.NamedRole("metrics_aggregator")
	LogCompactorRole      = tenure.NamedRole("log_compactor")
)

// LeaderRoles returns the three roles above.
func LeaderRoles() []tenure.Role {
	return []tenure.Role{SchedulerRole, MetricsAggregatorRole, LogCompactorRole}
}

// LeaderRole returns the one of [LeaderRoles] that has this name.
func LeaderRole(name string) (role tenure.Role, ok bool) {
	for _, role := range LeaderRoles() {
		if role.Name() == name {
			return role, true
		}
	}
	return tenure.Role{}, false
}
