package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// stateOf tells whether a term still stands. It does as long as its node's lease
// runs, and the node has not been given another session.
func (p *snapshot) stateOf(t history.Term) string {
	m, ok := p.member(t.Node)
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

// nodeState is a node's status, or silent if half its lease is over: heartbeats
// come each third of it.
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

// quiet is for how long a node has not been heard of. While nobody has looked, be
// it that the database does not answer or that this process was stopped, nobody
// knows what the nodes tell it: their age stands still.
func (p *snapshot) quiet(m tenure.Member) time.Duration {
	if p.problem != nil {
		return m.SilentFor
	}
	return m.SilentFor + min(time.Since(p.readAt), p.paceOf(m.Lease))
}

// paceOf is how often to look at a node: its heartbeats come each third of its
// lease.
func (p *snapshot) paceOf(lease time.Duration) time.Duration {
	return min(max(lease/5, leastInterval), nodesInterval)
}

// pace is how often to look at the nodes.
func (p *snapshot) pace() time.Duration {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pace := nodesInterval
	for _, m := range p.members {
		if m.Status != tenure.StatusDead {
			pace = min(pace, p.paceOf(m.Lease))
		}
	}
	return pace
}

// mostWanted are the nodes that everybody is told of: where there are too many,
// those that lead most, and those that live.
func (p *snapshot) mostWanted(leads map[uuid.UUID]int) []tenure.Member {
	if len(p.members) <= maxNodesTold {
		return p.members
	}
	wanted := slices.Clone(p.members)
	living := func(m tenure.Member) int {
		if p.nodeState(m) == dead {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(wanted, func(a, b tenure.Member) int {
		return cmp.Or(cmp.Compare(leads[b.ID], leads[a.ID]), cmp.Compare(living(b), living(a)))
	})
	return wanted[:maxNodesTold]
}

// leads counts the roles that nodes lead.
func (p *snapshot) leads() map[uuid.UUID]int {
	counts := map[uuid.UUID]int{}
	for _, name := range p.names {
		if r := p.roles[name]; r.state != vacant {
			counts[r.term.Node]++
		}
	}
	return counts
}

func (p *snapshot) nodeRecord(m tenure.Member, leads map[uuid.UUID]int) nodeRecord {
	return nodeRecord{
		ID: m.ID, Name: m.Name, Host: m.Host, Address: m.Address, Version: m.Version, State: p.nodeState(m), Drained: m.Drained,
		Leads: leads[m.ID], Load: m.Load.Mean(), CPU: m.CPU, Memory: m.Memory, Clients: m.Connections, Jobs: m.Jobs, InFlight: m.InFlight,
		StartedAt: m.StartedAt, Silent: seconds(p.quiet(m)), Lease: seconds(m.Lease), Labels: m.Labels, Roles: m.Roles,
	}
}
