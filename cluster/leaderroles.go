package cluster

import "github.com/exactly-one/tenure"

// Roles of which a cluster has at most one leader each. Their lock keys are derived from
// their names, as for other roles.
var (
	SchedulerRole         = tenure.NamedRole("scheduler")
	MetricsAggregatorRole = tenure.NamedRole("metrics-aggregator")
	LogCompactorRole      = tenure.NamedRole("log-compactor")
)

// LeaderRoles returns the three predefined roles.
func LeaderRoles() []tenure.Role {
	return []tenure.Role{SchedulerRole, MetricsAggregatorRole, LogCompactorRole}
}

// LeaderRole returns the role of [LeaderRoles] with this name.
func LeaderRole(name string) (role tenure.Role, ok bool) {
	for _, role := range LeaderRoles() {
		if role.Name() == name {
			return role, true
		}
	}
	return tenure.Role{}, false
}
