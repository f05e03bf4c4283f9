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

// assumption has the assumed participants of a spread, and their roles. When a node dies,
// the member must act immediately, but reading the leaders of thousands of roles takes
// longer than taking them over. All members compute the same plan, so each one assumes the
// last plan to be in effect, and verifies this later.
type assumption struct {
	self  uuid.UUID
	roles int

	nodes           []placement.Node
	leaders         map[string]uuid.UUID // assumed leaders; nil until the leaders were first read
	previousLeaders map[string]uuid.UUID // leaders when the last plan was made
	changedAt       time.Duration        // when a node last joined or left, or the assumption was wrong
	readAt          time.Duration        // when the leaders were last read
	cost            time.Duration        // duration of the last read
	found           map[string]uuid.UUID // the leaders found by the last read
	unverified      time.Duration        // when a node first joined or left after the last read
	nextRead        time.Duration
	confirmed       bool                     // the leaders last read are the planned ones
	vacant          map[string]time.Duration // by role of another node: since when it has had no leader
	adopted         map[string]time.Duration // by role of another node: until when this member leads it
	standsIn        map[string]bool          // adopted roles their own nodes did not lead
	givenBack       map[string]bool          // such roles taken back by their own nodes, and not yet seen to lead
	mostLed         map[uuid.UUID]int        // the most roles of each node since a node last joined or left
}

// participants returns the live nodes sharing the roles, ordered by id.
func participants(members []tenure.Member, name string) []placement.Node {
	var nodes []placement.Node
	for _, m := range members {
		weight, shares := m.Spreads[name]
		if !shares || m.Status == Dead {
			continue
		}
		nodes = append(nodes, placement.Node{
			ID: m.ID, Name: m.Name, Weight: weight, Labels: m.Labels, Leaving: !m.Status.AcceptsWork(),
		})
	}
	slices.SortFunc(nodes, func(a, b placement.Node) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return nodes
}

// updateMembers records the participants and reports whether they have changed.
func (a *assumption) updateMembers(nodes []placement.Node, now time.Duration) bool {
	same := slices.EqualFunc(nodes, a.nodes, func(a, b placement.Node) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Weight == b.Weight && a.Leaving == b.Leaving && maps.Equal(a.Labels, b.Labels)
	})
	if same {
		return false
	}
	// Members can learn of several changes in a different order and make different plans
	// in between, so they verify soon.
	again := now-a.changedAt < time.Second
	a.nodes, a.changedAt, a.confirmed, a.mostLed = nodes, now, false, map[uuid.UUID]int{}
	window := a.checkWindow()
	a.nextRead = now + window
	if again {
		a.nextRead = now + window/4
	}
	if a.unverified <= a.readAt {
		a.unverified = now
	}
	a.readBy(a.unverified + 2*window) // even if nodes join and leave all the time
	return true
}

// readBy schedules a read of the leaders at a time, or earlier.
func (a *assumption) readBy(at time.Duration) { a.nextRead = min(a.nextRead, at) }

// checkWindow returns how long after a plan this member verifies its effect. The members'
// ids spread the reads: many reads of many roles at the same time would overload the
// database.
func (a *assumption) checkWindow() time.Duration {
	const least, perRole = 500 * time.Millisecond, 2 * time.Microsecond
	turn := 0.5 + float64(a.self[0])/256
	return time.Duration(turn * float64(least+time.Duration(len(a.nodes)*a.roles)*perRole))
}

// scheduleRead schedules a read after a notification without a change of the nodes: a role
// may be vacant or reserved for this member. While a plan takes effect, it causes most of
// these notifications, so the read can wait. It can also wait if reads are slow. But a
// reservation lasts for one interval, and this member must see it and acquire the role in
// this interval. With pausing, it must see it soon: it has just given up a role, and would
// otherwise leave the role to others.
func (a *assumption) scheduleRead(now, interval time.Duration, pausing bool) {
	const (
		grace = 50 * time.Millisecond // it may be the first notification of a death
		busy  = 20                    // spend at most 1/busy of the time on reads
	)
	at := a.readAt + busy*a.cost
	if !a.confirmed && !pausing {
		at = max(at, a.readAt+interval/4, a.changedAt+a.checkWindow())
	}
	a.readBy(max(now+grace, min(at, now+interval/2)))
}

// previousLeader returns the leader of a role when the plan was made, if it is live and
// another node, or uuid.Nil.
func (a *assumption) previousLeader(role string) uuid.UUID {
	leader, led := a.previousLeaders[role]
	if !led || leader == a.self || !slices.ContainsFunc(a.nodes, func(n placement.Node) bool { return n.ID == leader }) {
		return uuid.Nil
	}
	return leader
}

// member returns the participant for this member, if there is one.
func (a *assumption) member() (placement.Node, bool) {
	i := slices.IndexFunc(a.nodes, func(n placement.Node) bool { return n.ID == a.self })
	if i < 0 {
		return placement.Node{}, false
	}
	return a.nodes[i], true
}

// leaving reports whether this member should lead no role.
func (a *assumption) leaving() bool {
	self, found := a.member()
	return !found || self.Leaving
}

// assume assumes a plan to be in effect.
func (a *assumption) assume(plan placement.Plan) {
	holders := maps.Clone(plan.Placed)
	for _, u := range plan.Unplaced {
		if node, held := a.leaders[u.Role]; held {
			holders[u.Role] = node
		}
	}
	a.previousLeaders, a.leaders = a.leaders, holders
}

// countLed returns the nodes with more roles than ever since a node last joined or left.
func (a *assumption) countLed(holders map[string]uuid.UUID) map[uuid.UUID]bool {
	led, more := map[uuid.UUID]int{}, map[uuid.UUID]bool{}
	for _, node := range holders {
		led[node]++
	}
	for node, n := range led {
		if n > a.mostLed[node] {
			a.mostLed[node], more[node] = n, true
		}
	}
	return more
}

// adoptVacant finds roles of other members for this member to take over because their own
// member does not. After one interval without a leader, it takes the roles placed here by
// a plan without the idle members. After two intervals, it takes every role it may lead.
func (a *assumption) adoptVacant(places []placement.Role, plan placement.Plan, now, interval time.Duration) {
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
	if !found || self.Leaving {
		return
	}
	nodes := slices.Clone(a.nodes)
	for i := range nodes {
		nodes[i].Leaving = nodes[i].Leaving || idle[nodes[i].ID]
	}
	without := placement.Make(placement.Input{Nodes: nodes, Roles: places, Leaders: a.leaders})
	for _, role := range places {
		since, vacant := a.vacant[role.Name]
		if !vacant || now-since < interval {
			continue
		}
		if without.Placed[role.Name] == a.self || now-since >= 2*interval && placement.Eligible(self, role) {
			intervals := time.Duration(retryAdoption)
			if a.givenBack[role.Name] { // its own node took it back and does not lead it
				intervals = longAdoption
			}
			a.adopt(role.Name, now+intervals*interval)
			a.standsIn[role.Name] = true
		}
	}
}

// How many check intervals a member keeps an adopted role:
//
//   - long if an operator chose this member, or if the role's own node declined it or did
//     not lead it again;
//   - short if a planned move crossed another one: a plan from the new leaders decides
//     soon.
//
// A member offers a role, after a vacancy or a failed offer, to its own node in the next
// interval.
const (
	longAdoption  = 10
	shortAdoption = 2
	retryAdoption = 1
)

// adopt makes this member lead a role until a time, or longer if it has adopted the role
// before, although it is placed elsewhere.
func (a *assumption) adopt(role string, until time.Duration) {
	a.adopted[role] = max(a.adopted[role], until)
	delete(a.vacant, role)
}
