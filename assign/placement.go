package assign

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/cluster"
)

// anyNode is the capability of rows without need of one.
const anyNode = ""

// candidate is a node that may get rows.
type candidate struct {
	id         string
	node       cluster.NodeInfo
	unfinished int
}

// candidates returns the nodes accepting rows, with or without capacity.
func (c Config) candidates(nodes []cluster.NodeInfo, unfinished map[string]share) []*candidate {
	var all []*candidate
	for _, node := range nodes {
		if node.Status == cluster.Active && node.HasRole(c.WorkerRole) {
			id := node.ID.String()
			all = append(all, &candidate{id: id, node: node, unfinished: unfinished[id].total()})
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return strings.Compare(a.id, b.id) })
	return all
}

// weight returns how busy a node is: its load, from 0 to 1, plus the used part
// of its capacity.
func (c *candidate) weight(places int) float64 {
	return c.node.Load() + float64(c.unfinished)/float64(places)
}

func (c *candidate) can(capability string) bool {
	return capability == anyNode || c.node.HasCapability(capability)
}

// placement assigns each row to the least busy candidate.
type placement struct {
	places     int // per node
	candidates []*candidate
	byNeed     map[string][]*candidate // candidates by capability
}

func newPlacement(places int, candidates []*candidate) *placement {
	return &placement{places: places, candidates: candidates, byNeed: map[string][]*candidate{}}
}

// able returns the candidates with a capability.
func (p *placement) able(capability string) []*candidate {
	able, known := p.byNeed[capability]
	if !known {
		for _, c := range p.candidates {
			if c.can(capability) {
				able = append(able, c)
			}
		}
		p.byNeed[capability] = able
	}
	return able
}

// free returns how many more rows of a capability can be assigned, or math.MaxInt if there
// are more.
func (p *placement) free(capability string) int {
	free := 0
	for _, c := range p.able(capability) {
		free += min(max(0, p.places-c.unfinished), math.MaxInt-free)
	}
	return free
}

// chooseNode chooses a node for one more row of a capability, if there is one.
func (p *placement) chooseNode(capability string) (node string, ok bool) {
	var best *candidate
	for _, c := range p.able(capability) {
		if c.unfinished < p.places && (best == nil || c.before(best, p.places)) {
			best = c
		}
	}
	if best == nil {
		return "", false
	}
	best.unfinished++
	return best.id, true
}

// before reports whether a candidate is less busy than another.
func (c *candidate) before(other *candidate, places int) bool {
	return cmp.Or(cmp.Compare(c.weight(places), other.weight(places)), cmp.Compare(c.unfinished, other.unfinished)) < 0
}
