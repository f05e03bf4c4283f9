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

// assumption is which nodes take part and which of them lead what, as a member
// assumes. When a node dies, the member has to act at once, and reading who leads
// thousands of roles takes longer than leading them. All members compute the same
// plan, so each one assumes that the last plan took effect and verifies it later.
type assumption struct {
	self  uuid.UUID
	roles int

	nodes     []placement.Node
	holders   map[string]uuid.UUID // who shall lead; nil until it was read who leads
	leaders   map[string]uuid.UUID // who led when the last plan was made
	changedAt time.Duration        // when a node came or went, or the assumption was wrong
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

// updateMembers takes note of who takes part and reports whether that has changed.
func (a *assumption) updateMembers(nodes []placement.Node, now time.Duration) bool {
	same := slices.EqualFunc(nodes, a.nodes, func(a, b placement.Node) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Weight == b.Weight && a.Leaves == b.Leaves && maps.Equal(a.Labels, b.Labels)
	})
	if same {
		return false
	}
	// Members that learn of several changes in different portions plan differently
	// in between: then they have to look soon.
	again := now-a.changedAt < time.Second
	a.nodes, a.changedAt, a.settled = nodes, now, false
	a.nextRead = now + a.window()
	if again {
		a.nextRead = now + a.window()/4
	}
	return true
}

// readBy makes sure that the holders are read at a time, or earlier.
func (a *assumption) readBy(at time.Duration) { a.nextRead = min(a.nextRead, at) }

// window is how long the members take to look whether a plan has come true. They
// do so one after the other, at moments that their ids settle: many that read
// many roles at once would stop the database.
func (a *assumption) window() time.Duration {
	const least, perRole = 500 * time.Millisecond, 2 * time.Microsecond
	turn := 0.5 + float64(a.self[0])/256
	return time.Duration(turn * float64(least+time.Duration(len(a.nodes)*a.roles)*perRole))
}

// scheduleRead takes note of news that are not of nodes: a role may have become vacant,
// or be reserved for this member. While a plan is coming true, that makes most of
// the news; but a reservation lasts for one interval, and has to be seen by then.
func (a *assumption) scheduleRead(now, interval time.Duration) {
	const (
		grace = 50 * time.Millisecond // it may be the first news of a death
		busy  = 20                    // at most this part of the time is spent on reading
	)
	at := max(now+grace, a.readAt+busy*a.cost)
	if !a.settled {
		at = max(at, min(now+interval/2, max(a.readAt+interval/4, a.changedAt+a.window())))
	}
	a.readBy(at)
}

// previousLeader returns the live node besides this member that led a role when the plan
// was made, or uuid.Nil.
func (a *assumption) previousLeader(role string) uuid.UUID {
	leader, led := a.leaders[role]
	if !led || leader == a.self || !slices.ContainsFunc(a.nodes, func(n placement.Node) bool { return n.ID == leader }) {
		return uuid.Nil
	}
	return leader
}

// member returns the participant that this member is, if it is one.
func (a *assumption) member() (placement.Node, bool) {
	i := slices.IndexFunc(a.nodes, func(n placement.Node) bool { return n.ID == a.self })
	if i < 0 {
		return placement.Node{}, false
	}
	return a.nodes[i], true
}

// leaves reports whether this member shall lead nothing.
func (a *assumption) leaves() bool {
	self, found := a.member()
	return !found || self.Leaves
}

// assume assumes that a plan took effect.
func (a *assumption) assume(plan placement.Plan) {
	holders := maps.Clone(plan.Placed)
	for _, u := range plan.Unplaced {
		if node, held := a.holders[u.Role]; held {
			holders[u.Role] = node
		}
	}
	a.leaders, a.holders = a.holders, holders
}

// adopt finds the roles that this member takes although they belong to others,
// who do not take them: those that nobody leads for longer than an interval and
// that would be its own without those others, and after another interval all
// that it may lead.
func (a *assumption) adopt(places []placement.Role, plan placement.Plan, now, interval time.Duration) {
	idle := map[uuid.UUID]bool{}
	for name, since := range a.vacant {
		if now-since >= interval {
			idle[plan.Placed[name]] = true
		}
	}
	if len(idle) == 0 {
		return
	}
	self, found := a.member()
	if !found || self.Leaves {
		return
	}
	nodes := slices.Clone(a.nodes)
	for i := range nodes {
		nodes[i].Leaves = nodes[i].Leaves || idle[nodes[i].ID]
	}
	without := placement.Make(placement.Question{Nodes: nodes, Roles: places, Holders: a.holders})
	for _, role := range places {
		since, vacant := a.vacant[role.Name]
		if !vacant || now-since < interval {
			continue
		}
		if without.Placed[role.Name] == a.self || now-since >= 2*interval && placement.Eligible(self, role) {
			a.keep(role.Name, now, interval)
		}
	}
}

// keep has a role led here for a while although it belongs elsewhere.
func (a *assumption) keep(role string, now, interval time.Duration) {
	const intervals = 10
	a.adopted[role] = now + intervals*interval
	delete(a.vacant, role)
}
