package postgres

import (
	"sync"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// maxChanged bounds how many nodes are noted one by one. A node without a cluster never
// takes them.
const maxChanged = 100

// nodePayload is the payload of notifications about this node.
func (s *session) nodePayload() string { return s.opening.Node.ID.String() }

// changedNodes notes the nodes reported as changed. A join removes the rows of nodes a
// day after their death without a report; they go when all are read. It is safe for
// concurrent use.
type changedNodes struct {
	mu  sync.Mutex
	any bool
	ids map[uuid.UUID]struct{}
}

// note notes the payload of a notification, and returns whether it is the id of a node.
func (c *changedNodes) note(payload string) (aboutNode bool) {
	if payload == link.RolesOnly {
		return false
	}
	id, err := uuid.Parse(payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.any || err != nil || len(c.ids) == maxChanged {
		c.any, c.ids = true, nil
		return err == nil
	}
	if c.ids == nil {
		c.ids = map[uuid.UUID]struct{}{}
	}
	c.ids[id] = struct{}{}
	return true
}

// take returns the nodes noted since the last call, or anyNode.
func (c *changedNodes) take() (ids []uuid.UUID, anyNode bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ids {
		ids = append(ids, id)
	}
	anyNode = c.any
	c.any, c.ids = false, nil
	return ids, anyNode
}
