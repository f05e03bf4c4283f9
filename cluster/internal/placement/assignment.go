package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// assignment decides which roles of a class each node leads, given the number
// of roles for each node.
type assignment struct {
	class       *class
	capacity    []int // by node: how many more roles it gets
	preferences *preferences
}

func newAssignment(c *class, counts []int, w *preferences) *assignment {
	return &assignment{class: c, capacity: slices.Clone(counts), preferences: w}
}

func (d *assignment) assign(s *slot, node int) {
	s.node = node
	d.capacity[node]--
}

// assignPreferred assigns roles to their most preferred nodes, regardless of their current
// leaders. Roles that already have their best leader come first.
func (d *assignment) assignPreferred() {
	slots := d.class.slots
	for i := range slots {
		s := &slots[i]
		if s.leader == noNode {
			continue
		}
		if w := d.preferences.of(s.role); w != nil && w.scores[s.leader] == d.best(w) && w.scores[s.leader] > 0 && d.capacity[s.leader] > 0 {
			d.assign(s, s.leader)
		}
	}
	for i := range slots {
		s := &slots[i]
		w := d.preferences.of(s.role)
		if w == nil || s.node != noNode {
			continue
		}
		least := 0
		if s.leader != noNode && d.capacity[s.leader] > 0 { // the role could stay
			least = w.scores[s.leader]
		}
		d.assignByPreference(s, w, least)
	}
}

// best returns the highest score of an eligible node of the class.
func (d *assignment) best(w *preference) int {
	for _, node := range w.order {
		if d.class.allows[node] {
			return w.scores[node]
		}
	}
	return 0
}

// assignByPreference assigns a role to the node with the highest score above least, among
// the nodes with capacity.
func (d *assignment) assignByPreference(s *slot, w *preference, least int) {
	for _, node := range w.order {
		if w.scores[node] <= least {
			return
		}
		if d.class.allows[node] && d.capacity[node] > 0 {
			d.assign(s, node)
			return
		}
	}
}

// keepCurrent leaves roles with their leaders while these have capacity. A node gives up
// the roles with the least preference for it, and of equals the last.
func (d *assignment) keepCurrent() {
	held := map[int][]*slot{}
	for i := range d.class.slots {
		if s := &d.class.slots[i]; s.leader != noNode && s.node == noNode {
			held[s.leader] = append(held[s.leader], s)
		}
	}
	for node, slots := range held {
		if len(slots) > d.capacity[node] {
			slices.SortStableFunc(slots, func(a, b *slot) int {
				return cmp.Compare(d.preferences.score(b.role, node), d.preferences.score(a.role, node))
			})
		}
		for _, s := range slots[:min(len(slots), d.capacity[node])] {
			d.assign(s, node)
		}
	}
}

// assignRest assigns the remaining roles: first roles with a preferred node that has
// capacity, then the others, filling one node after another.
func (d *assignment) assignRest() {
	slots := d.class.slots
	for i := range slots {
		if s := &slots[i]; s.node == noNode {
			if w := d.preferences.of(s.role); w != nil {
				d.assignByPreference(s, w, 0)
			}
		}
	}
	next := 0
	for i := range slots {
		s := &slots[i]
		if s.node != noNode {
			continue
		}
		for d.capacity[d.class.eligible[next]] == 0 {
			next++
		}
		d.assign(s, d.class.eligible[next])
	}
}

// preferences caches how much roles prefer nodes.
type preferences struct {
	nodes []Node
	known map[string]*preference
}

// preference holds the scores of all roles with the same preferences.
type preference struct {
	scores []int // by node
	order  []int // indices of the nodes, highest score first
}

func newPreferences(nodes []Node) *preferences { return &preferences{nodes, map[string]*preference{}} }

// of returns the preference of a role, or nil if it has none.
func (w *preferences) of(role *Role) *preference {
	if role.PreferredNode == "" && len(role.Prefers) == 0 {
		return nil
	}
	key := fmt.Sprintf("%q %s", role.PreferredNode, canonical(role.Prefers))
	if known := w.known[key]; known != nil {
		return known
	}
	known := &preference{scores: make([]int, len(w.nodes)), order: make([]int, len(w.nodes))}
	for i, node := range w.nodes {
		known.order[i] = i
		for label, value := range role.Prefers {
			if has(node.Labels, map[string]string{label: value}) {
				known.scores[i]++
			}
		}
		if role.PreferredNode == node.Name || role.PreferredNode == node.ID.String() {
			known.scores[i] += len(role.Prefers) + 1 // more than all labels together
		}
	}
	slices.SortStableFunc(known.order, func(a, b int) int { return cmp.Compare(known.scores[b], known.scores[a]) })
	w.known[key] = known
	return known
}

// score returns how much a role prefers a node.
func (w *preferences) score(role *Role, node int) int {
	if pref := w.of(role); pref != nil {
		return pref.scores[node]
	}
	return 0
}
