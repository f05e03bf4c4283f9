package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// noNode takes the place of a node's index.
const noNode = -1

// class is a set of roles with the same eligible nodes.
type class struct {
	eligible []int  // indices of the nodes, ascending
	allows   []bool // by node
	slots    []slot // ordered by role
}

// slot is a role with its current and its planned leader.
type slot struct {
	role   *Role
	leader int // current leader if it may continue, or noNode
	node   int // planned leader, or noNode
}

// classify groups the roles into classes. Classes with the fewest eligible
// nodes come first.
func classify(nodes []Node, roles []Role, holders map[string]uuid.UUID) []*class {
	index := make(map[uuid.UUID]int, len(nodes))
	for i, node := range nodes {
		index[node.ID] = i
	}
	byLabels, byNodes := map[string]*class{}, map[string]*class{}
	var classes []*class
	for i := range roles {
		role := &roles[i]
		key := canonical(role.Requires)
		c := byLabels[key]
		if c == nil {
			c = newClass(nodes, role.Requires)
			if same := byNodes[fmt.Sprint(c.eligible)]; same != nil {
				c = same
			} else {
				byNodes[fmt.Sprint(c.eligible)] = c
				classes = append(classes, c)
			}
			byLabels[key] = c
		}
		s := slot{role: role, leader: noNode, node: noNode}
		if id, held := holders[role.Name]; held {
			if holder, known := index[id]; known && c.allows[holder] {
				s.leader = holder
			}
		}
		c.slots = append(c.slots, s)
	}
	slices.SortStableFunc(classes, func(a, b *class) int { return cmp.Compare(len(a.eligible), len(b.eligible)) })
	return classes
}

func newClass(nodes []Node, requires map[string]string) *class {
	c := &class{allows: make([]bool, len(nodes))}
	for i, node := range nodes {
		if has(node.Labels, requires) {
			c.allows[i] = true
			c.eligible = append(c.eligible, i)
		}
	}
	return c
}

func has(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, found := labels[key]; !found || got != value {
			return false
		}
	}
	return true
}

// canonical returns equal texts for equal maps.
func canonical(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&text, "%q=%q,", key, labels[key])
	}
	return text.String()
}

// unplacedReason returns a function for the reason why no node may lead a role.
func unplacedReason(all, staying []Node) func(*Role) string {
	switch {
	case len(all) == 0:
		return func(*Role) string { return "no live node takes part" }
	case len(staying) == 0:
		return func(*Role) string { return "every node that takes part is leaving" }
	}
	return func(role *Role) string {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(role.Requires)) {
			label := key + "=" + role.Requires[key]
			if !slices.ContainsFunc(staying, func(n Node) bool { return has(n.Labels, map[string]string{key: role.Requires[key]}) }) {
				return "no live node has the label " + label
			}
			labels = append(labels, label)
		}
		return "no live node has all of the labels " + strings.Join(labels, ", ")
	}
}
