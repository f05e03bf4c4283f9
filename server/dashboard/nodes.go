package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/record"
)

// stateOf returns whether a term is still valid: its node's lease has not expired, and
// the node has not opened another session.
func (p *snapshot) stateOf(t history.Term) string {
	m, ok := p.member(t.Node)
	if !t.Ended.IsZero() && t.AtRest(p.clock()) {
		return atRest
	}
	if !t.Ended.IsZero() || !ok || m.Incarnation != int64(t.Incarnation) {
		return vacant
	}
	switch p.nodeState(m) {
	case dead:
		return vacant
	case silent:
		return silent
	default:
		return led
	}
}

func (p *snapshot) member(id uuid.UUID) (tenure.Member, bool) {
	i, ok := p.byNode[id]
	if !ok {
		return tenure.Member{}, false
	}
	return p.members[i], true
}

// nodeState is a node's status, or silent if half its lease is over: it sends a
// heartbeat every third of its lease.
func (p *snapshot) nodeState(m tenure.Member) string {
	quiet := p.quiet(m)
	switch {
	case m.Status == tenure.StatusDead || quiet >= m.Lease:
		return dead
	case quiet > m.Lease/2:
		return silent
	default:
		return string(m.Status)
	}
}

// quiet is the time since a node's last heartbeat, as of the last read. While nothing
// is read, because the database does not answer or this process was stopped, newer
// heartbeats are unknown, so the time does not increase.
func (p *snapshot) quiet(m tenure.Member) time.Duration {
	if p.problem != nil {
		return m.SilentFor
	}
	return m.SilentFor + min(time.Since(p.readAt), p.paceOf(m.Lease))
}

// paceOf is the interval for reading a node: it sends a heartbeat every third of its
// lease.
func (p *snapshot) paceOf(lease time.Duration) time.Duration {
	return min(max(lease/5, leastInterval), nodesInterval)
}

// pace is the interval for reading the nodes.
func (p *snapshot) pace() time.Duration {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pace := nodesInterval
	for _, m := range p.members {
		if m.Status != tenure.StatusDead {
			pace = min(pace, p.paceOf(m.Lease))
		}
	}
	if len(p.work.Processors)+len(p.work.Schedules) > 0 {
		pace = min(pace, workInterval)
	}
	return pace
}

// nodesToPublish returns the nodes to publish: if there are too many, the nodes with the
// most roles, live ones, and some dead ones.
func (p *snapshot) nodesToPublish(shown []tenure.Member, leads map[uuid.UUID]int) []tenure.Member {
	if len(shown) <= maxNodesTold {
		return shown
	}
	wanted := slices.Clone(shown)
	living := func(m tenure.Member) int {
		if p.nodeState(m) == dead {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(wanted, func(a, b tenure.Member) int {
		return cmp.Or(cmp.Compare(leads[b.ID], leads[a.ID]), cmp.Compare(living(b), living(a)))
	})
	told, rest := wanted[:maxNodesTold], wanted[maxNodesTold:]
	rest = slices.DeleteFunc(slices.Clone(rest), func(m tenure.Member) bool { return living(m) == 1 })
	rest = rest[:min(len(rest), maxDeadTold)]
	return append(told[:maxNodesTold-len(rest):maxNodesTold-len(rest)], rest...)
}

// isDead reports whether a node is dead.
func (p *snapshot) isDead(id uuid.UUID) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	m, ok := p.member(id)
	return ok && p.nodeState(m) == dead
}

// leads counts the led roles of each node.
func (p *snapshot) leads() map[uuid.UUID]int {
	counts := map[uuid.UUID]int{}
	for _, name := range p.names {
		if r := p.roles[name]; r.isLed() {
			counts[r.term.Node]++
		}
	}
	return counts
}

func (p *snapshot) nodeRecord(m tenure.Member, leads map[uuid.UUID]int) nodeRecord {
	m.Status, m.SilentFor = tenure.NodeStatus(p.nodeState(m)), p.quiet(m)
	return nodeRecord{record.NewNodeState(m), leads[m.ID]}
}
