package postgres

import (
	"slices"
	"sync"

	"github.com/google/uuid"
)

// maxFailedOpenings is how many incarnations are remembered for a node. If there
// are more, the next leader may wait for one of them in vain, for one lease.
const maxFailedOpenings = 16

// failedOpenings are the incarnations of failed openings since the last successful one of
// their node. Nothing was trusted in them, but they may have written the node's row
// before they failed.
type failedOpenings struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]int32
}

// add remembers the incarnation of a failed opening; 0 is none.
func (f *failedOpenings) add(node uuid.UUID, incarnation int32) {
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

// forget forgets the failed openings of a node after a successful one, which has replaced
// their row.
func (f *failedOpenings) forget(node uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byNode, node)
}

// of returns the incarnations of the failed openings of a node.
func (f *failedOpenings) of(node uuid.UUID) []int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byNode[node])
}
