package cluster

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// belief is what a member thinks of who takes part and who leads what. When a
// node dies it has to act at once, and to read who leads thousands of roles
// takes longer than to lead them. Since all members plan alike, each can go on
// from the last plan as if it had come true, and look later whether it has.
type belief struct {
	self  uuid.UUID
	roles int

	nodes     []placement.Node
	holders   map[string]uuid.UUID // who shall lead; nil until it was read who leads
	leaders   map[string]uuid.UUID // who led when the last plan was made
	changedAt time.Duration        // when a node came or went, or the belief was wrong
	readAt    time.Duration        // when the holders were read last
	cost      time.Duration        // of reading them
	nextRead  time.Duration
	settled   bool                     // what was read last is what was planned
	vacant    map[string]time.Duration // since when a role of others was seen to have no leader
	adopted   map[string]time.Duration // until when a role is led here although it belongs elsewhere
}

// participants returns the live nodes that share the roles, in the order of
// their ids.
func participants(members []tenure.Member, name string) []placement.Node {
	var nodes []placement.Node
	for _, m := range members {
		weight, shares := m.Spreads[name]
		if !shares || m.Status == Dead {
			continue
		}
		nodes = append(nodes, placement.Node{
			ID: m.ID, Name: m.Name, Weight: weight, Labels: m.Labels, Leaves: !m.Status.AcceptsWork(),
		})
	}
	slices.SortFunc(nodes, func(a, b placement.Node) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return nodes
}

// learn takes note of who takes part and reports whether that has changed.
func (b *belief) learn(nodes []placement.Node, now time.Duration) bool {
	same := slices.EqualFunc(nodes, b.nodes, func(a, b placement.Node) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Weight == b.Weight && a.Leaves == b.Leaves && maps.Equal(a.Labels, b.Labels)
	})
	if same {
		return false
	}
	// Members that learn of several changes in different portions plan differently
	// in between: then they have to look soon.
	again := now-b.changedAt < time.Second
	b.nodes, b.changedAt, b.settled = nodes, now, false
	b.nextRead = now + b.window()
	if again {
		b.nextRead = now + b.window()/4
	}
	return true
}

// readBy makes sure that the holders are read at a time, or earlier.
func (b *belief) readBy(at time.Duration) { b.nextRead = min(b.nextRead, at) }

// window is how long the members take to look whether a plan has come true. They
// do so one after the other, at moments that their ids settle: many that read
// many roles at once would stop the database.
func (b *belief) window() time.Duration {
	const least, perRole = 500 * time.Millisecond, 2 * time.Microsecond
	turn := 0.5 + float64(b.self[0])/256
	return time.Duration(turn * float64(least+time.Duration(len(b.nodes)*b.roles)*perRole))
}

// hear takes note of news that are not of nodes: a role may have become vacant,
// or be reserved for this member. While a plan is coming true, that makes most of
// the news; but a reservation lasts for one interval, and has to be seen by then.
func (b *belief) hear(now, interval time.Duration) {
	const (
		grace = 50 * time.Millisecond // it may be the first news of a death
		busy  = 20                    // at most this part of the time is spent on reading
	)
	at := max(now+grace, b.readAt+busy*b.cost)
	if !b.settled {
		at = max(at, min(now+interval/2, max(b.readAt+interval/4, b.changedAt+b.window())))
	}
	b.readBy(at)
}

// giver returns the live node besides this member that led a role when the plan
// was made, or uuid.Nil.
func (b *belief) giver(role string) uuid.UUID {
	leader, led := b.leaders[role]
	if !led || leader == b.self || !slices.ContainsFunc(b.nodes, func(n placement.Node) bool { return n.ID == leader }) {
		return uuid.Nil
	}
	return leader
}

// member returns the participant that this member is, if it is one.
func (b *belief) member() (placement.Node, bool) {
	i := slices.IndexFunc(b.nodes, func(n placement.Node) bool { return n.ID == b.self })
	if i < 0 {
		return placement.Node{}, false
	}
	return b.nodes[i], true
}

// leaves reports whether this member shall lead nothing.
func (b *belief) leaves() bool {
	self, found := b.member()
	return !found || self.Leaves
}

// believe makes a plan the belief.
func (b *belief) believe(plan placement.Plan) {
	holders := maps.Clone(plan.Placed)
	for _, u := range plan.Unplaced {
		if node, held := b.holders[u.Role]; held {
			holders[u.Role] = node
		}
	}
	b.leaders, b.holders = b.holders, holders
}

// adopt finds the roles that this member takes although they belong to others,
// who do not take them: those that nobody leads for longer than an interval and
// that would be its own without those others, and after another interval all
// that it may lead.
func (b *belief) adopt(places []placement.Role, plan placement.Plan, now, interval time.Duration) {
	idle := map[uuid.UUID]bool{}
	for name, since := range b.vacant {
		if now-since >= interval {
			idle[plan.Placed[name]] = true
		}
	}
	if len(idle) == 0 {
		return
	}
	self, found := b.member()
	if !found || self.Leaves {
		return
	}
	nodes := slices.Clone(b.nodes)
	for i := range nodes {
		nodes[i].Leaves = nodes[i].Leaves || idle[nodes[i].ID]
	}
	without := placement.Make(placement.Question{Nodes: nodes, Roles: places, Holders: b.holders})
	for _, role := range places {
		since, vacant := b.vacant[role.Name]
		if !vacant || now-since < interval {
			continue
		}
		if without.Placed[role.Name] == b.self || now-since >= 2*interval && placement.Eligible(self, role) {
			b.keep(role.Name, now, interval)
		}
	}
}

// keep has a role led here for a while although it belongs elsewhere.
func (b *belief) keep(role string, now, interval time.Duration) {
	const intervals = 10
	b.adopted[role] = now + intervals*interval
	delete(b.vacant, role)
}
