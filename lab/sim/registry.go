package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// register makes the session of b the node's.
func (s *server) register(b *backend) {
	s.flush()
	s.correctTimes()
	now := s.clock()
	started, trustUntil := now, time.Duration(0)
	if last := s.nodes[b.node.ID]; last != nil {
		started, trustUntil = last.started, last.trustUntil
		if last.incarnation != b.client.opening.PreviousIncarnation {
			trustUntil = last.trustedUntil()
		}
	}
	if !b.client.opening.Reopened {
		s.requests = slices.DeleteFunc(s.requests, func(r tenure.Request) bool { return r.Node == b.node.ID })
	}
	s.dropOffersTo(b.node.ID)
	s.nodes[b.node.ID] = &nodeRow{
		info: b.node, description: b.client.opening.Description, incarnation: b.incarnation, lease: b.timing.Lease,
		started: started, lastHeartbeat: now, session: b,
		opened: s.world.now(), life: s.started, trustUntil: trustUntil,
	}
}

// described notifies all other nodes that a node has changed its description.
func (s *server) described(by *backend) { s.notifyAllBut(by, (*session).noticedNodes) }

// ringInterval is how long a watch may take to read the ring if no notification wakes it.
const ringInterval = 2 * time.Second

// joined notifies all other nodes that a node has joined. The new node begins to watch. Of
// the others only the oldest node has another predecessor: its session wakes its watch. If
// the node returns, an earlier session may have lost its row. The time until the others
// look for such sessions is part of watchPeriod.
func (s *server) joined(by *backend, returns bool) {
	s.notifyAllBut(by, func(c *session) {
		c.noticedNodes()
		if b := c.backend; b != nil && b.isOldest() {
			c.process.gate.pass(b.watch)
		}
	})
	if by.watch(); returns {
		s.ring()
	}
	for _, b := range s.backends {
		if b.isOldest() {
			s.world.after(ringInterval, b.watch)
		}
	}
}

// isOldest reports whether b is the oldest session of the ring.
func (b *backend) isOldest() bool {
	for _, row := range b.server.nodes {
		if !row.dead && row.incarnation < b.incarnation {
			return false
		}
	}
	return true
}

// row returns the row of the node, or nil if b is no longer its session or was marked
// dead.
func (b *backend) row() *nodeRow {
	row := b.server.nodes[b.node.ID]
	if row == nil || row.incarnation != b.incarnation || row.dead {
		return nil
	}
	return row
}

// describe changes a node's description in the registry. The notification is a separate
// statement.
func (b *backend) describe(description tenure.Description) error {
	row := b.row()
	if row == nil {
		return tenure.ErrSuperseded
	}
	row.description, row.leaving = description, false
	return nil
}

// recordDeath marks a node dead, unless it has opened another session.
func (s *server) recordDeath(incarnation int64, noticed time.Duration) {
	for _, row := range s.nodes {
		if row.incarnation == incarnation && !row.dead {
			s.declareDead(row, noticed)
			s.notify()
		}
	}
	s.ring()
}

// declareDead marks a node dead, whose death was noticed at a time of the server's clock.
func (s *server) declareDead(row *nodeRow, noticed time.Duration) {
	row.dead, row.diedAt = true, noticed
	s.called(simcalls.Call{Kind: simcalls.Deaths, Session: row.incarnation, Nodes: []simcalls.Node{s.rowOf(row)}})
	s.dropOffersTo(row.info.ID)
}

// markDead marks the nodes dead that were silent for longer than a threshold
// and their lease, and returns their ids.
func (s *server) markDead(threshold time.Duration) []uuid.UUID {
	s.correctTimes()
	return s.change(func(row *nodeRow) bool {
		if row.dead || row.silentFor(s) <= max(threshold, row.lease) {
			return false
		}
		s.declareDead(row, s.clock())
		return true
	})
}

// forget removes the dead nodes that are chosen, and returns their ids.
func (s *server) forget(chosen func(*nodeRow) bool) []uuid.UUID {
	s.correctTimes()
	return s.change(func(row *nodeRow) bool {
		if !row.dead || !chosen(row) || row.trustedUntil() > s.clock() && !s.defects.ForgetEarly {
			return false
		}
		delete(s.nodes, row.info.ID)
		s.called(simcalls.Call{Kind: simcalls.Leaves, Session: row.incarnation})
		s.emit(steps.Step{Kind: steps.Forgets, Node: row.info.ID.String()})
		return true
	})
}

// change calls f with every row and returns the ids of the rows that it changed. It
// sends a notification if there are any.
func (s *server) change(f func(*nodeRow) bool) []uuid.UUID {
	var changed []uuid.UUID
	for _, row := range s.inOrder() {
		if f(row) {
			changed = append(changed, row.info.ID)
		}
	}
	if len(changed) > 0 {
		s.notify()
		s.ring()
	}
	return changed
}

func (r *nodeRow) silentFor(s *server) time.Duration { return s.clock() - r.lastHeartbeat }

// inOrder returns the rows by incarnation.
func (s *server) inOrder() []*nodeRow {
	rows := make([]*nodeRow, 0, len(s.nodes))
	for _, row := range s.nodes {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *nodeRow) int { return cmp.Compare(a.incarnation, b.incarnation) })
	return rows
}

// members reads the registry.
func (s *server) members() []tenure.Member {
	var members []tenure.Member
	for _, row := range s.inOrder() {
		m := tenure.Member{
			NodeInfo: row.info, Description: row.description, Load: row.load,
			Incarnation: row.incarnation, StartedAt: s.wall(row.started), LastHeartbeat: s.wall(row.lastHeartbeat),
			Lease: row.lease, SilentFor: row.silentFor(s),
		}
		if row.dead {
			m.Status, m.StatusBy = tenure.StatusDead, ""
		}
		members = append(members, m)
	}
	return members
}

// holders reads which nodes lead roles, or for which nodes the roles are reserved.
func (s *server) holders(names []string) []tenure.RoleHolder {
	holders := []tenure.RoleHolder{}
	for _, name := range names {
		row := s.roles[name]
		switch {
		case row == nil || row.term == 0:
		case row.ended && s.isReserved(row):
			holders = append(holders, tenure.RoleHolder{Role: name, Term: row.term, Node: row.reservedFor, Reserved: true})
		case !row.ended && row.holder.row() != nil:
			holders = append(holders, tenure.RoleHolder{Role: name, Term: row.term, Node: row.node})
		}
	}
	slices.SortFunc(holders, func(a, b tenure.RoleHolder) int { return cmp.Compare(a.Role, b.Role) })
	return holders
}

// isAlive reports whether a node has not been silent for its lease and is not
// dead.
func (s *server) isAlive(node uuid.UUID) bool {
	row := s.nodes[node]
	return row != nil && !row.dead && row.silentFor(s) < row.lease
}

// nameTaken reports whether another living node has the name of a node.
func (s *server) nameTaken(node tenure.NodeInfo) bool {
	for id, row := range s.nodes {
		if id != node.ID && row.info.Name == node.Name && s.isAlive(id) {
			return true
		}
	}
	return false
}

// requestOfNode records a request for a node.
func (s *server) requestOfNode(r tenure.Request) error {
	if !s.isAlive(r.Node) || r.Target != uuid.Nil && !s.isAlive(r.Target) {
		return tenure.ErrUnknownNode
	}
	if r.Kind == tenure.RequestDrain && !r.Force && !s.anotherActive(r.Node) {
		return tenure.ErrLastNode
	}
	r.Role = ""
	s.enqueue(r)
	return nil
}

// anotherActive reports whether a node other than the given one is active.
func (s *server) anotherActive(than uuid.UUID) bool {
	for id := range s.nodes {
		if id != than && s.isActive(id) {
			return true
		}
	}
	return false
}

// isActive reports whether a node is active and has not received a request to drain.
func (s *server) isActive(node uuid.UUID) bool {
	asked := slices.ContainsFunc(s.requests, func(r tenure.Request) bool {
		return r.Node == node && r.Kind == tenure.RequestDrain
	})
	row := s.nodes[node]
	return s.isAlive(node) && row.description.Status == tenure.StatusActive && !row.leaving && !asked
}

// errNotDead is the error of forgetting a node that is unknown or alive.
func errNotDead(node uuid.UUID) error {
	return fmt.Errorf("%w that is dead: %s", tenure.ErrUnknownNode, node)
}
