package memory

import (
	"slices"
	"sync"

	"github.com/google/uuid"
)

// maxFailedOpenings is how many incarnations are remembered for a node. If there
// are more, the next leader may wait for one of them in vain, for one lease.
const maxFailedOpenings = 16

// FailedOpenings are the incarnations of failed openings since the last successful one of
// their node. Nothing was trusted in them, but they may have written the node's row
// before they failed.
type FailedOpenings struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]int32
}

// Add remembers the incarnation of a failed opening; 0 is none.
func (f *FailedOpenings) Add(node uuid.UUID, incarnation int32) {
	if incarnation == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byNode == nil {
		f.byNode = map[uuid.UUID][]int32{}
	}
	f.byNode[node] = append(f.byNode[node], incarnation)
	f.byNode[node] = f.byNode[node][max(0, len(f.byNode[node])-maxFailedOpenings):]
}

// Forget forgets the failed openings of a node after a successful one: it has replaced
// their row.
func (f *FailedOpenings) Forget(node uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byNode, node)
}

// Of returns the incarnations of the failed openings of a node.
func (f *FailedOpenings) Of(node uuid.UUID) []int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byNode[node])
}
