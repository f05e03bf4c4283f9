package signal

import (
	"sync"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// MaxChanged bounds how many nodes are noted one by one. A node without a cluster never
// takes them.
const MaxChanged = 100

// ChangedNodes notes the nodes reported as changed. A join removes the rows of nodes a
// day after their death without a report; they go when all are read. It is safe for
// concurrent use.
type ChangedNodes struct {
	mu  sync.Mutex
	any bool
	ids map[uuid.UUID]struct{}
}

// Note notes the payload of a notification, and returns whether it is the id of a node.
func (c *ChangedNodes) Note(payload string) (aboutNode bool) {
	if payload == link.RolesOnly {
		return false
	}
	id, err := uuid.Parse(payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.any || err != nil || len(c.ids) == MaxChanged {
		c.any, c.ids = true, nil
		return err == nil
	}
	if c.ids == nil {
		c.ids = map[uuid.UUID]struct{}{}
	}
	c.ids[id] = struct{}{}
	return true
}

// Take returns the nodes noted since the last call, or anyNode.
func (c *ChangedNodes) Take() (ids []uuid.UUID, anyNode bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ids {
		ids = append(ids, id)
	}
	anyNode = c.any
	c.any, c.ids = false, nil
	return ids, anyNode
}
