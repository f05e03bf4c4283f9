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

// record is what the registry has of a node. It outlives the node's sessions
// unless the node leaves.
type record struct {
	member   tenure.Member
	heard    time.Duration // when it was heard of last
	requests []tenure.Request
}

// register makes a session that of its node, or refuses it for its name. Under
// the mutex.
func (d *Database) register(s *session) error {
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
	if last := d.records[node.ID]; last != nil {
		started = last.member.StartedAt
	}
	d.opened++
	s.number = d.opened
	d.nodes[node.ID] = s
	d.records[node.ID] = &record{heard: now.Mono, member: tenure.Member{
		NodeInfo: node, Description: copied(s.opening.Description), Incarnation: s.number,
		StartedAt: started, LastHeartbeat: now.Wall, Lease: s.opening.Timing.Lease,
	}}
	return nil
}

// copied returns a description that shares nothing with d.
func copied(d tenure.Description) tenure.Description {
	d.Roles, d.Capabilities = slices.Clone(d.Roles), slices.Clone(d.Capabilities)
	d.Labels, d.Spreads = maps.Clone(d.Labels), maps.Clone(d.Spreads)
	return d
}

// record returns what the registry has of the session's node. Under the mutex,
// while the session is that of its node.
func (s *session) record() *record { return s.db.records[s.opening.Node.ID] }

// bury records the death of a node. Under the mutex.
func (r *record) bury() {
	r.member.Status, r.member.StatusBy, r.requests = tenure.StatusDead, "", nil
}

// beat records a heartbeat. Under the mutex.
func (r *record) beat(load tenure.Load, now clocks.Instant) {
	r.member.Load, r.member.LastHeartbeat, r.heard = load, now.Wall, now.Mono
}

// follow makes a node that took a request to drain count as draining, before it
// describes itself: of two who drain the last two nodes one is refused. Under the
// mutex.
func (r *record) follow(requests []tenure.Request) {
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
		s.record().member.Description = copied(description)
		s.db.tell()
		return nil
	})
}

// Members implements [tenure.RegistrySession].
func (s *session) Members() (members []tenure.Member, err error) {
	err = s.call("members", func() error {
		members = s.db.members()
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

// members lists the registry. Under the mutex.
func (d *Database) members() []tenure.Member {
	members := make([]tenure.Member, 0, len(d.records))
	now := d.clock.Now().Mono
	for _, r := range d.records {
		m := r.member
		m.Description, m.SilentFor = copied(m.Description), now-r.heard
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b tenure.Member) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	return members
}

// Members returns the nodes that the registry has, the dead among them, oldest
// session first. A stranger that [Database.Occupy] made is no node.
func (d *Database) Members(ctx context.Context) (members []tenure.Member, err error) {
	err = d.ask(ctx, "members", func() error {
		members = d.members()
		return nil
	})
	return members, err
}

// MarkDead marks the nodes as dead that sent no heartbeat for longer than the
// threshold and than their own lease, ends their sessions, and returns their
// ids. The end of a lease does so without it, so there is little left to mark.
func (d *Database) MarkDead(ctx context.Context, threshold time.Duration) (dead []uuid.UUID, err error) {
	err = d.ask(ctx, "mark dead nodes", func() error {
		now := d.clock.Now().Mono
		dead = d.those(func(r *record) bool {
			return r.member.Status != tenure.StatusDead && now-r.heard > max(threshold, r.member.Lease)
		})
		for _, id := range dead {
			d.records[id].bury()
			if s := d.nodes[id]; s != nil {
				s.end(errBuried, true)
			}
		}
		return nil
	})
	return dead, err
}

// Forget removes a dead node from the registry. It returns an error that matches
// [tenure.ErrUnknownNode] if there is no dead node of this id.
func (d *Database) Forget(ctx context.Context, node uuid.UUID) error {
	return d.ask(ctx, "forget a node", func() error {
		if r := d.records[node]; r == nil || r.member.Status != tenure.StatusDead {
			return fmt.Errorf("%w that is dead: %s", tenure.ErrUnknownNode, node)
		}
		delete(d.records, node)
		d.tell()
		return nil
	})
}

// ForgetDead removes the dead nodes that were heard of last longer ago than a
// time, and returns their ids.
func (d *Database) ForgetDead(ctx context.Context, olderThan time.Duration) (gone []uuid.UUID, err error) {
	err = d.ask(ctx, "forget dead nodes", func() error {
		now := d.clock.Now().Mono
		gone = d.those(func(r *record) bool { return r.member.Status == tenure.StatusDead && now-r.heard > olderThan })
		for _, id := range gone {
			delete(d.records, id)
		}
		if len(gone) > 0 {
			d.tell()
		}
		return nil
	})
	return gone, err
}

// those returns the ids of the nodes that are meant, in order. Under the mutex.
func (d *Database) those(meant func(*record) bool) []uuid.UUID {
	var ids []uuid.UUID
	for id, r := range d.records {
		if meant(r) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) })
	return ids
}

// requestOfNode passes a request to drain or to come back on to its node. Under
// the mutex.
func (d *Database) requestOfNode(request tenure.Request) error {
	s, r := d.nodes[request.Node], d.records[request.Node]
	switch {
	case s == nil:
		return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Node)
	case request.Target != uuid.Nil && d.nodes[request.Target] == nil:
		return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Target)
	case request.Kind == tenure.RequestDrain && !request.Force && !d.another(request.Node):
		return fmt.Errorf("%w: %s", tenure.ErrLastNode, request.Node)
	}
	request.At = d.clock.Now().Wall
	r.requests = append(r.requests, request)
	s.wake()
	return nil
}

// another reports whether a node is in service besides this one, and not asked
// to leave. Under the mutex.
func (d *Database) another(node uuid.UUID) bool {
	for id := range d.nodes {
		r := d.records[id]
		leaving := slices.ContainsFunc(r.requests, func(q tenure.Request) bool { return q.Kind == tenure.RequestDrain })
		if id != node && r.member.Status == tenure.StatusActive && !leaving {
			return true
		}
	}
	return false
}
