package cluster

import "github.com/exactly-one/tenure"

// Roles of which a cluster has exactly one leader, each with a lock key of its
// own that other programs can share.
var (
	SchedulerRole         = tenure.NamedRole("scheduler").WithKey(0x464F_5247_0001)
	MetricsAggregatorRole = tenure.NamedRole("metrics_aggregator").WithKey(0x464F_5247_0002)
	LogCompactorRole      = tenure.NamedRole("log_compactor").WithKey(0x464F_5247_0003)
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
