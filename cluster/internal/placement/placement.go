// Package placement decides which node should lead which role of a set that
// nodes share. It is pure: it reads no clock, asks nobody, and gives the same
// answer for the same question, so that every node can answer it by itself and
// all agree.
//
// # What is fair
//
// Every node has a weight. Seats are given out by the method of Webster and
// Sainte-Laguë: the next role goes to the node for which 2n+1, divided by its
// weight, is least, where n is what it has; a role moves only if that is
// strictly better afterwards. The method has the properties that matter here:
// when a node comes, roles move to it and to nobody else; when one goes, only
// its roles move. In addition no node gets more than its share rounded up, if
// every node may lead every role; without that, many light nodes could make a
// heavy one take a little more.
//
// # What moves
//
// A role stays where it is unless its node may not lead it any more, or has
// more than its share while another has less. Where roles require labels, one
// role may have to move so that another can: such chains are found as shortest
// augmenting paths between groups of roles that the same nodes may lead.
//
// # Half done
//
// Roles without a node are dealt, sorted by name, in contiguous ranges to the
// nodes in the order of their ids, and a node gives up its last roles first.
// Therefore a node that asks again when some of the moves have happened gets
// the rest of the same plan.
package placement

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// Node is a node that takes part.
type Node struct {
	ID     uuid.UUID
	Name   string
	Weight float64 // more than 0
	Labels map[string]string
	// Leaves says that the node shall lead nothing any more.
	Leaves bool
}

// Role is a role of the set. Its name is unique.
type Role struct {
	Name          string
	Requires      map[string]string // labels that a node must have to lead it
	Prefers       map[string]string // labels of the nodes that should lead it, if that is fair
	PreferredNode string            // name or id of the node that should, if that is fair
}

// Question is what a plan is made for.
type Question struct {
	Nodes []Node
	Roles []Role
	// Holders says who leads what now. Nodes and roles that are not listed do
	// not matter.
	Holders map[string]uuid.UUID
	// Honor moves roles for the sake of what they prefer, too. Otherwise only
	// roles that have to move are placed by that.
	Honor bool
}

// Plan says who shall lead what.
type Plan struct {
	Placed   map[string]uuid.UUID // by role
	Unplaced []Unplaced           // ordered by role
}

// Unplaced is a role that no node may lead.
type Unplaced struct {
	Role, Reason string
}

// Make answers a question.
func Make(q Question) Plan {
	nodes := make([]Node, 0, len(q.Nodes))
	for _, node := range q.Nodes {
		if !node.Leaves {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return slices.Compare(a.ID[:], b.ID[:]) })
	roles := slices.Clone(q.Roles)
	slices.SortFunc(roles, func(a, b Role) int { return cmp.Compare(a.Name, b.Name) })

	plan := Plan{Placed: make(map[string]uuid.UUID, len(roles))}
	classes := classify(nodes, roles, q.Holders)
	shares := newShares(nodes, classes)
	shares.fill()
	shares.level()
	wishes := newWishes(nodes)
	for i, c := range classes {
		if len(c.eligible) == 0 {
			reason := whyNot(q.Nodes, nodes)
			for _, s := range c.seats {
				plan.Unplaced = append(plan.Unplaced, Unplaced{s.role.Name, reason(s.role)})
			}
			continue
		}
		deal := newDeal(c, shares.counts[i], wishes)
		if q.Honor {
			deal.honor()
		}
		deal.keep()
		deal.place()
		for _, s := range c.seats {
			plan.Placed[s.role.Name] = nodes[s.node].ID
		}
	}
	slices.SortFunc(plan.Unplaced, func(a, b Unplaced) int { return cmp.Compare(a.Role, b.Role) })
	return plan
}
