package placement

// Eligible reports whether a node may lead a role.
func Eligible(node Node, role Role) bool { return !node.Leaving && has(node.Labels, role.Requires) }
