package cluster

import "slices"

// Filter selects nodes. The zero value selects all nodes accepting work.
type Filter struct {
	Role       NodeRole          // required node role; empty for any
	Capability string            // required capability; empty for any
	Labels     map[string]string // required labels, with these values
	Statuses   []NodeStatus      // the node must have one of these statuses; default Active
	// Load makes [Member.Watch] and [Watch] also report changes of the load alone,
	// at most once per check interval and node. A member then reads the registry
	// every check interval as long as the watch runs. It selects no nodes.
	Load bool
}

// Matches reports whether the filter selects a node.
func (f Filter) Matches(node NodeInfo) bool {
	for key, value := range f.Labels {
		if had, ok := node.Labels[key]; !ok || had != value {
			return false
		}
	}
	switch {
	case f.Role != "" && !node.HasRole(f.Role), f.Capability != "" && !node.HasCapability(f.Capability):
		return false
	case len(f.Statuses) == 0:
		return node.Status == Active
	default:
		return slices.Contains(f.Statuses, node.Status)
	}
}
