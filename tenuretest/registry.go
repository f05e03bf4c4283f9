package tenuretest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

var _ tenure.RegistrySession = (*session)(nil)

// record is the entry of a node in the registry. It outlives the node's
// sessions unless the node leaves.
type record struct {
	member      tenure.Member
	heartbeatAt time.Duration // when its last heartbeat arrived
	requests    []tenure.Request
}

// registerLocked registers a session, or refuses it for its node's name.
func (d *Database) registerLocked(s *session) error {
	node := s.opening.Node
	if s.opening.UniqueName {
		for id, other := range d.nodes {
			if id != node.ID && other.opening.Node.Name == node.Name {
				return fmt.Errorf("%w: %q is node %s on %s", tenure.ErrNameTaken, node.Name, id, other.opening.Node.Host)
			}
		}
	}
	now := d.clock.Now()
	started := now.Wall
	var requests []tenure.Request
	if last := d.records[node.ID]; last != nil {
		started = last.member.StartedAt
		if s.opening.Reopened {
			requests = last.requests
		}
	}
	d.opened++
	s.number = d.opened
	d.nodes[node.ID] = s
	d.records[node.ID] = &record{heartbeatAt: now.Mono, requests: requests, member: tenure.Member{
		NodeInfo: node, Description: copied(s.opening.Description), Incarnation: s.number,
		StartedAt: started, LastHeartbeat: now.Wall, Lease: s.opening.Timing.Lease,
	}}
	return nil
}

// copied returns a deep copy of d.
func copied(d tenure.Description) tenure.Description {
	d.Roles, d.Capabilities = slices.Clone(d.Roles), slices.Clone(d.Capabilities)
	d.Labels, d.Spreads = maps.Clone(d.Labels), maps.Clone(d.Spreads)
	return d
}

// recordLocked returns the entry of the session's node. The session must be the
// current one of its node.
func (s *session) recordLocked() *record { return s.db.records[s.opening.Node.ID] }

// markDeadLocked records the death of a node.
func (r *record) markDeadLocked() {
	r.member.Status, r.member.StatusBy = tenure.StatusDead, ""
}

// recordHeartbeatLocked records a heartbeat.
func (r *record) recordHeartbeatLocked(load tenure.Load, now clocks.Instant) {
	r.member.Load, r.member.LastHeartbeat, r.heartbeatAt = load, now.Wall, now.Mono
}

// followLocked sets a node to draining as soon as it takes a request to drain:
// if two requests drain the last two nodes, one is refused.
func (r *record) followLocked(requests []tenure.Request) {
	if len(requests) == 0 {
		return
	}
	if last := requests[len(requests)-1]; last.Kind == tenure.RequestDrain && r.member.Status.AcceptsWork() {
		r.member.Status, r.member.Drained, r.member.StatusBy = tenure.StatusDraining, false, last.By
	}
}

// WriteDescription implements [tenure.RegistrySession].
func (s *session) WriteDescription(description tenure.Description) error {
	return s.call("describe", func() error {
		s.recordLocked().member.Description = copied(description)
		s.db.notifyLocked()
		return nil
	})
}

// Members implements [tenure.RegistrySession].
func (s *session) Members() (members []tenure.Member, err error) {
	err = s.call("members", func() error {
		members = s.db.membersLocked()
		return nil
	})
	return members, err
}

// Holders implements [tenure.RegistrySession].
func (s *session) Holders(roles []string) (holders []tenure.RoleHolder, err error) {
	err = s.call("holders", func() error {
		now := s.db.clock.Now().Mono
		for _, name := range slices.Sorted(slices.Values(roles)) {
			switch r := s.db.roles[name]; {
			case r == nil:
			case r.leader != nil:
				holders = append(holders, tenure.RoleHolder{Role: name, Term: r.last.Term, Node: r.last.NodeID})
			case r.reservedUntil > now:
				holders = append(holders, tenure.RoleHolder{Role: name, Term: r.last.Term, Node: r.reservedFor, Reserved: true})
			}
		}
		return nil
	})
	return slices.Compact(holders), err
}

// membersLocked lists the registry.
func (d *Database) membersLocked() []tenure.Member {
	members := make([]tenure.Member, 0, len(d.records))
	now := d.clock.Now().Mono
	for _, r := range d.records {
		m := r.member
		m.Description, m.SilentFor = copied(m.Description), now-r.heartbeatAt
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b tenure.Member) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	return members
}

// Members returns the nodes in the registry, the dead among them, oldest session first. A
// stranger of [Database.Occupy] is no node.
func (d *Database) Members(ctx context.Context) (members []tenure.Member, err error) {
	err = d.ask(ctx, "members", func() error {
		members = d.membersLocked()
		return nil
	})
	return members, err
}

// MarkDead marks nodes dead after a silence longer than the threshold and their own lease,
// ends their sessions, and returns their ids. The end of a lease does so without it, so
// there is little left to mark.
func (d *Database) MarkDead(ctx context.Context, threshold time.Duration) (dead []uuid.UUID, err error) {
	err = d.ask(ctx, "mark dead nodes", func() error {
		now := d.clock.Now().Mono
		dead = d.nodesLocked(func(r *record) bool {
			return r.member.Status != tenure.StatusDead && now-r.heartbeatAt > max(threshold, r.member.Lease)
		})
		for _, id := range dead {
			d.records[id].markDeadLocked()
			if s := d.nodes[id]; s != nil {
				s.endLocked(errMarkedDead, true)
			}
		}
		return nil
	})
	return dead, err
}

// Forget removes a dead node from the registry. The error matches [tenure.ErrUnknownNode]
// if there is no dead node of this id.
func (d *Database) Forget(ctx context.Context, node uuid.UUID) error {
	return d.ask(ctx, "forget a node", func() error {
		if r := d.records[node]; r == nil || r.member.Status != tenure.StatusDead {
			return fmt.Errorf("%w that is dead: %s", tenure.ErrUnknownNode, node)
		}
		delete(d.records, node)
		d.notifyLocked()
		return nil
	})
}

// ForgetDead removes the dead nodes with a last heartbeat older than olderThan, and
// returns their ids.
func (d *Database) ForgetDead(ctx context.Context, olderThan time.Duration) (gone []uuid.UUID, err error) {
	err = d.ask(ctx, "forget dead nodes", func() error {
		now := d.clock.Now().Mono
		gone = d.nodesLocked(func(r *record) bool { return r.member.Status == tenure.StatusDead && now-r.heartbeatAt > olderThan })
		for _, id := range gone {
			delete(d.records, id)
		}
		if len(gone) > 0 {
			d.notifyLocked()
		}
		return nil
	})
	return gone, err
}

// nodesLocked returns the ids of the selected nodes, in order.
func (d *Database) nodesLocked(meant func(*record) bool) []uuid.UUID {
	var ids []uuid.UUID
	for id, r := range d.records {
		if meant(r) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) })
	return ids
}

// requestNodeLocked passes a request to drain or undrain on to its node.
func (d *Database) requestNodeLocked(request tenure.Request) error {
	s, r := d.nodes[request.Node], d.records[request.Node]
	switch {
	case s == nil:
		return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Node)
	case request.Target != uuid.Nil && d.nodes[request.Target] == nil:
		return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Target)
	case request.Kind == tenure.RequestDrain && !request.Force && !d.otherActiveLocked(request.Node):
		return fmt.Errorf("%w: %s", tenure.ErrLastNode, request.Node)
	}
	request.At = d.clock.Now().Wall
	r.requests = append(r.requests, request)
	s.wakeLocked()
	return nil
}

// otherActiveLocked reports whether another node is active and not requested to
// drain.
func (d *Database) otherActiveLocked(node uuid.UUID) bool {
	for id := range d.nodes {
		if id != node && d.isActiveLocked(id) {
			return true
		}
	}
	return false
}

// isActiveLocked reports whether a live node is active and not requested to drain.
func (d *Database) isActiveLocked(node uuid.UUID) bool {
	r := d.records[node]
	leaving := slices.ContainsFunc(r.requests, func(q tenure.Request) bool { return q.Kind == tenure.RequestDrain })
	return r.member.Status == tenure.StatusActive && !leaving
}
