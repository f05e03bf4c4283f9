package cluster

import "slices"

// Filter chooses nodes. The zero value chooses all that accept work.
type Filter struct {
	Role       NodeRole          // that the node must have; empty for any
	Capability string            // that the node must have; empty for any
	Labels     map[string]string // that the node must have, with these values
	Statuses   []NodeStatus      // of which the node must have one; default Active
}

// Matches reports whether the filter chooses a node.
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
