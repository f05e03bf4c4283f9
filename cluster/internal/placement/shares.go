package placement

import (
	"math"
	"slices"
)

// shares decides how many roles of each class each node shall lead.
type shares struct {
	classes []*class
	weights []float64
	caps    []int   // the most that a node may have
	counts  [][]int // by class and node
	totals  []int   // by node
}

// rank is how dear one more role is to a node: the one to which it is least dear
// gets it. It is a number of its own, so that all ranks are in one order.
type rank struct {
	over  bool // beyond the node's cap
	price float64
}

func (r rank) less(other rank) bool {
	if r.over != other.over {
		return !r.over
	}
	return r.price < other.price
}

// newShares counts what the nodes have.
func newShares(nodes []Node, classes []*class) *shares {
	s := &shares{classes: classes, totals: make([]int, len(nodes))}
	for _, node := range nodes {
		s.weights = append(s.weights, node.Weight)
		s.caps = append(s.caps, math.MaxInt)
	}
	for _, c := range classes {
		counts := make([]int, len(nodes))
		for _, seat := range c.seats {
			if seat.holder != nobody {
				counts[seat.holder]++
				s.totals[seat.holder]++
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

// limit sets the caps where all roles are of one class: the share rounded up.
func (s *shares) limit(c *class) {
	const inexact = 1e-9 // a share that is a whole number may be computed as a little more
	sum := 0.0
	for _, i := range c.eligible {
		sum += s.weights[i]
	}
	for _, i := range c.eligible {
		share := float64(len(c.seats)) * s.weights[i] / sum
		s.caps[i] = int(math.Ceil(share - inexact))
	}
}

// rank ranks the role that a node would have as its n-th, counted from 0.
func (s *shares) rank(node, n int) rank {
	return rank{n >= s.caps[node], float64(2*n+1) / s.weights[node]}
}

// fill gives out the roles that no node has, those first that the fewest nodes
// may lead.
func (s *shares) fill() {
	next := make([]rank, len(s.totals))
	for i, n := range s.totals {
		next[i] = s.rank(i, n)
	}
	for i, c := range s.classes {
		if len(c.eligible) == 0 {
			continue
		}
		for _, seat := range c.seats {
			if seat.holder != nobody {
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

// level moves roles from nodes that have too many until no move is an
// improvement. The nodes give in the order of what they would give, the dearest
// first: then one that finds no taker never finds one later, since whatever is
// within its reach stays as it is.
func (s *shares) level() {
	search := newSearch(s)
	done := make([]bool, len(s.totals))
	for {
		donor, dearest := nobody, rank{}
		for i, n := range s.totals {
			if n == 0 || done[i] {
				continue
			}
			if last := s.rank(i, n-1); donor == nobody || !last.less(dearest) {
				donor, dearest = i, last
			}
		}
		if donor == nobody {
			return
		}
		taker := search.from(donor)
		if !s.rank(taker, s.totals[taker]).less(dearest) {
			done[donor] = true
			continue
		}
		s.totals[donor]--
		s.totals[taker]++
		for node := taker; node != donor; node = search.giver[node] {
			moved := s.counts[search.class[node]]
			moved[node]++
			moved[search.giver[node]]--
		}
	}
}

// search finds to whom a node can give a role, directly or through others that
// give on a role of theirs.
type search struct {
	shares *shares
	giver  []int // by node: who would give to it, or nobody
	class  []int // by node: a role of which class
	seen   []bool
	queue  []int
}

func newSearch(s *shares) *search {
	n := len(s.totals)
	return &search{shares: s, giver: make([]int, n), class: make([]int, n), seen: make([]bool, len(s.classes))}
}

// from returns the node within a donor's reach to which one more role is least
// dear, the nearest of several: the donor itself if there is no other.
func (b *search) from(donor int) int {
	s := b.shares
	for i := range b.giver {
		b.giver[i] = nobody
	}
	clear(b.seen)
	b.giver[donor] = donor
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
				if b.giver[next] != nobody {
					continue
				}
				b.giver[next], b.class[next] = node, i
				b.queue = append(b.queue, next)
				if r := s.rank(next, s.totals[next]); r.less(cheapest) {
					best, cheapest = next, r
				}
			}
		}
	}
	return best
}
