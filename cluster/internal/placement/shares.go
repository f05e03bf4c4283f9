package placement

import (
	"math"
	"slices"
)

// shares decides how many roles of each class each node should lead.
type shares struct {
	classes []*class
	weights []float64
	caps    []int   // by node: the maximum number of roles
	counts  [][]int // by class and node
	totals  []int   // by node
}

// rank orders nodes by the cost of one more role; the node with the lowest rank
// gets it. Comparing ranks needs no other state, so all ranks have one order.
type rank struct {
	over bool // beyond the node's cap
	cost float64
}

func (r rank) less(other rank) bool {
	if r.over != other.over {
		return !r.over
	}
	return r.cost < other.cost
}

// newShares counts the roles led by the nodes.
func newShares(nodes []Node, classes []*class) *shares {
	s := &shares{classes: classes, totals: make([]int, len(nodes))}
	for _, node := range nodes {
		s.weights = append(s.weights, node.Weight)
		s.caps = append(s.caps, math.MaxInt)
	}
	for _, c := range classes {
		counts := make([]int, len(nodes))
		for _, slot := range c.slots {
			if slot.leader != noNode {
				counts[slot.leader]++
				s.totals[slot.leader]++
			}
		}
		s.counts = append(s.counts, counts)
	}
	placeable := slices.DeleteFunc(slices.Clone(classes), func(c *class) bool { return len(c.eligible) == 0 })
	if len(placeable) == 1 {
		s.limit(placeable[0])
	}
	return s
}

// limit sets the caps if all roles are in one class: the share rounded up.
func (s *shares) limit(c *class) {
	const inexact = 1e-9 // a share that is a whole number may be computed as slightly more
	sum := 0.0
	for _, i := range c.eligible {
		sum += s.weights[i]
	}
	for _, i := range c.eligible {
		share := float64(len(c.slots)) * s.weights[i] / sum
		s.caps[i] = int(math.Ceil(share - inexact))
	}
}

// rank ranks a node's n-th role, counted from 0.
func (s *shares) rank(node, n int) rank {
	return rank{n >= s.caps[node], float64(2*n+1) / s.weights[node]}
}

// placeVacant distributes the roles without a leader. Classes with the fewest
// eligible nodes come first.
func (s *shares) placeVacant() {
	next := make([]rank, len(s.totals))
	for i, n := range s.totals {
		next[i] = s.rank(i, n)
	}
	for i, c := range s.classes {
		if len(c.eligible) == 0 {
			continue
		}
		for _, slot := range c.slots {
			if slot.leader != noNode {
				continue
			}
			best := c.eligible[0]
			for _, node := range c.eligible[1:] {
				if next[node].less(next[best]) {
					best = node
				}
			}
			s.counts[i][best]++
			s.totals[best]++
			next[best] = s.rank(best, s.totals[best])
		}
	}
}

// balance moves roles away from overloaded nodes until no move is an improvement. Donors
// are tried in the order of the cost of their last role, the highest first. A donor
// without a taker never finds one later, because the nodes within its reach do not change.
func (s *shares) balance() {
	search := newSearch(s)
	done := make([]bool, len(s.totals))
	for {
		donor, dearest := noNode, rank{}
		for i, n := range s.totals {
			if n == 0 || done[i] {
				continue
			}
			if last := s.rank(i, n-1); donor == noNode || !last.less(dearest) {
				donor, dearest = i, last
			}
		}
		if donor == noNode {
			return
		}
		taker := search.from(donor)
		if !s.rank(taker, s.totals[taker]).less(dearest) {
			done[donor] = true
			continue
		}
		s.totals[donor]--
		s.totals[taker]++
		for node := taker; node != donor; node = search.source[node] {
			moved := s.counts[search.class[node]]
			moved[node]++
			moved[search.source[node]]--
		}
	}
}

// search finds a node to take a role from a donor, directly or through a chain of nodes,
// each of which passes on a role.
type search struct {
	shares *shares
	source []int // by node: the node that would pass a role to it, or noNode
	class  []int // by node: the class of that role
	seen   []bool
	queue  []int
}

func newSearch(s *shares) *search {
	n := len(s.totals)
	return &search{shares: s, source: make([]int, n), class: make([]int, n), seen: make([]bool, len(s.classes))}
}

// from returns the node within the donor's reach with the lowest rank for one
// more role, the nearest of several. It returns the donor if there is no other.
func (b *search) from(donor int) int {
	s := b.shares
	for i := range b.source {
		b.source[i] = noNode
	}
	clear(b.seen)
	b.source[donor] = donor
	b.queue = append(b.queue[:0], donor)
	best, cheapest := donor, s.rank(donor, s.totals[donor])
	for at := 0; at < len(b.queue); at++ {
		node := b.queue[at]
		for i, c := range s.classes {
			if b.seen[i] || s.counts[i][node] == 0 {
				continue
			}
			b.seen[i] = true
			for _, next := range c.eligible {
				if b.source[next] != noNode {
					continue
				}
				b.source[next], b.class[next] = node, i
				b.queue = append(b.queue, next)
				if r := s.rank(next, s.totals[next]); r.less(cheapest) {
					best, cheapest = next, r
				}
			}
		}
	}
	return best
}
