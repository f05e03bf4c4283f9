// Package placement distributes the roles of a shared set among the nodes. It is pure: it
// reads no clock and no database, and returns the same plan for the same input. Every node
// can compute the plan on its own, and all agree.
//
// # Fairness
//
// Every node has a weight. Roles are distributed by the method of Webster and
// Sainte-Laguë: the next role goes to the node with the smallest (2n+1)/weight, where n is
// its number of roles. A role moves only for a strict improvement. The method has two
// useful properties: when a node joins, roles move only to this node, and when a node
// leaves, only its roles move. In addition, if every node may lead every role, no node
// gets more than its share rounded up. Without this limit, many light nodes could leave a
// heavy node slightly more than its share.
//
// # Moves
//
// A role stays with its leader unless the leader may no longer lead it, or has more than
// its share while another node has less. If roles require labels, one role may have to
// move to make room for another. Such chains are found as shortest augmenting paths
// between groups of roles with the same eligible nodes.
//
// # Partial progress
//
// Roles without a leader are assigned, sorted by name, in contiguous ranges to
// the nodes in the order of their ids. A node gives up its last roles first.
// Therefore a plan made after some of the moves contains the remaining moves of
// the same plan.
package placement

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// Node is one of the nodes sharing the roles.
type Node struct {
	ID     uuid.UUID
	Name   string
	Weight float64 // more than 0
	Labels map[string]string
	// A leaving node must not lead any role.
	Leaving bool
}

// Role is a role of the set. Its name is unique.
type Role struct {
	Name          string
	Requires      map[string]string // labels a node needs to lead it
	Prefers       map[string]string // labels of preferred leaders, as far as is fair
	PreferredNode string            // name or id of the preferred leader, as far as is fair
}

// Input has everything a plan depends on.
type Input struct {
	Nodes []Node
	Roles []Role
	// Leaders maps roles to their current leaders. Unknown nodes and roles are
	// ignored.
	Leaders map[string]uuid.UUID
	// MoveToPreferred also moves roles to their preferred nodes. Otherwise preferences
	// place only roles that have to move.
	MoveToPreferred bool
}

// Plan has the planned leader of each role.
type Plan struct {
	Placed   map[string]uuid.UUID // by role
	Unplaced []Unplaced           // ordered by role
}

// Unplaced is a role without an eligible node.
type Unplaced struct {
	Role, Reason string
}

// Make makes a plan.
func Make(q Input) Plan {
	nodes := make([]Node, 0, len(q.Nodes))
	for _, node := range q.Nodes {
		if !node.Leaving {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return slices.Compare(a.ID[:], b.ID[:]) })
	roles := slices.Clone(q.Roles)
	slices.SortFunc(roles, func(a, b Role) int { return cmp.Compare(a.Name, b.Name) })

	plan := Plan{Placed: make(map[string]uuid.UUID, len(roles))}
	classes := classify(nodes, roles, q.Leaders)
	shares := newShares(nodes, classes)
	shares.placeVacant()
	shares.balance()
	preferences := newPreferences(nodes)
	for i, c := range classes {
		if len(c.eligible) == 0 {
			reason := unplacedReason(q.Nodes, nodes)
			for _, s := range c.slots {
				plan.Unplaced = append(plan.Unplaced, Unplaced{s.role.Name, reason(s.role)})
			}
			continue
		}
		assignment := newAssignment(c, shares.counts[i], preferences)
		if q.MoveToPreferred {
			assignment.assignPreferred()
		}
		assignment.keepCurrent()
		assignment.assignRest()
		for _, s := range c.slots {
			plan.Placed[s.role.Name] = nodes[s.node].ID
		}
	}
	slices.SortFunc(plan.Unplaced, func(a, b Unplaced) int { return cmp.Compare(a.Role, b.Role) })
	return plan
}
