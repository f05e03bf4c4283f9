package memory

import (
	"sync"

	"github.com/google/uuid"
)

// TakenRequests are the ids of already returned requests for nodes. They may still be in
// the table, because their removal failed. They are not returned again.
type TakenRequests struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]int64
}

// Of returns the ids of a node.
func (t *TakenRequests) Of(node uuid.UUID) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]int64{}, t.byNode[node]...)
}

// Set replaces the ids of a node.
func (t *TakenRequests) Set(node uuid.UUID, ids []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(ids) == 0 {
		delete(t.byNode, node)
		return
	}
	if t.byNode == nil {
		t.byNode = map[uuid.UUID][]int64{}
	}
	t.byNode[node] = ids
}
