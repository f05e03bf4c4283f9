package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// deal decides which roles of a class each node leads when it is known how
// many.
type deal struct {
	class  *class
	room   []int // by node: how many roles it still gets
	wishes *wishes
}

func newDeal(c *class, counts []int, w *wishes) *deal {
	return &deal{class: c, room: slices.Clone(counts), wishes: w}
}

func (d *deal) give(s *seat, node int) {
	s.node = node
	d.room[node]--
}

// honor gives roles to the nodes that they prefer most, wherever they are now.
// Those that are where they want to be come first.
func (d *deal) honor() {
	seats := d.class.seats
	for i := range seats {
		s := &seats[i]
		if s.holder == nobody {
			continue
		}
		if w := d.wishes.of(s.role); w != nil && w.scores[s.holder] == d.best(w) && w.scores[s.holder] > 0 && d.room[s.holder] > 0 {
			d.give(s, s.holder)
		}
	}
	for i := range seats {
		s := &seats[i]
		w := d.wishes.of(s.role)
		if w == nil || s.node != nobody {
			continue
		}
		least := 0
		if s.holder != nobody && d.room[s.holder] > 0 { // it could stay
			least = w.scores[s.holder]
		}
		d.wish(s, w, least)
	}
}

// best is the highest score of a node that may lead the class.
func (d *deal) best(w *wish) int {
	for _, node := range w.order {
		if d.class.allows[node] {
			return w.scores[node]
		}
	}
	return 0
}

// wish gives a role to the node with the highest score that has room, if its
// score is more than least.
func (d *deal) wish(s *seat, w *wish, least int) {
	for _, node := range w.order {
		if w.scores[node] <= least {
			return
		}
		if d.class.allows[node] && d.room[node] > 0 {
			d.give(s, node)
			return
		}
	}
}

// keep leaves roles where they are while their node has room. What a node has to
// give up are those of its roles that like it least, and the last of these.
func (d *deal) keep() {
	held := map[int][]*seat{}
	for i := range d.class.seats {
		if s := &d.class.seats[i]; s.holder != nobody && s.node == nobody {
			held[s.holder] = append(held[s.holder], s)
		}
	}
	for node, seats := range held {
		if len(seats) > d.room[node] {
			slices.SortStableFunc(seats, func(a, b *seat) int {
				return cmp.Compare(d.wishes.score(b.role, node), d.wishes.score(a.role, node))
			})
		}
		for _, s := range seats[:min(len(seats), d.room[node])] {
			d.give(s, node)
		}
	}
}

// place gives out what is left: first what prefers a node that has room, then
// the rest, to one node after the other.
func (d *deal) place() {
	seats := d.class.seats
	for i := range seats {
		if s := &seats[i]; s.node == nobody {
			if w := d.wishes.of(s.role); w != nil {
				d.wish(s, w, 0)
			}
		}
	}
	next := 0
	for i := range seats {
		s := &seats[i]
		if s.node != nobody {
			continue
		}
		for d.room[d.class.eligible[next]] == 0 {
			next++
		}
		d.give(s, d.class.eligible[next])
	}
}

// wishes knows how much roles prefer nodes.
type wishes struct {
	nodes []Node
	known map[string]*wish
}

// wish is what some roles prefer.
type wish struct {
	scores []int // by node
	order  []int // the nodes, those with the highest score first
}

func newWishes(nodes []Node) *wishes { return &wishes{nodes, map[string]*wish{}} }

// of returns what a role prefers, or nil if nothing.
func (w *wishes) of(role *Role) *wish {
	if role.PreferredNode == "" && len(role.Prefers) == 0 {
		return nil
	}
	key := fmt.Sprintf("%q %s", role.PreferredNode, canonical(role.Prefers))
	if known := w.known[key]; known != nil {
		return known
	}
	known := &wish{scores: make([]int, len(w.nodes)), order: make([]int, len(w.nodes))}
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

// score is how much a role prefers a node.
func (w *wishes) score(role *Role, node int) int {
	if wish := w.of(role); wish != nil {
		return wish.scores[node]
	}
	return 0
}
