package dashboard

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// update puts a reading into the snapshot and returns the changes.
func (p *snapshot) update(r reading) changeRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.seen
	p.seen, p.problem, p.readAt = true, nil, time.Now()
	if !r.clock.IsZero() {
		p.offset = r.clock.Sub(p.readAt)
	}
	p.members, p.byNode = r.members, make(map[uuid.UUID]int, len(r.members))
	for i, m := range r.members {
		p.byNode[m.ID] = i
	}
	change := changeRecord{Roles: []roleRecord{}}
	events := p.putNodes(r, []eventRecord{}) // an empty list, not none, in JSON
	if r.terms != nil || r.whole {
		u := p.putTerms(r.terms, events)
		events, change.rewound = u.events, u.rewound
		change.missing = p.drop(r.whole)
		change.More = r.whole && change.missing || u.rewound || u.fewer || u.corrected
	}
	p.past.add(r, change.rewound)
	p.replaced = roster.FindReplaced(r.members, p.past.nodes)
	slices.SortStableFunc(events, func(a, b eventRecord) int { return a.At.Compare(b.At) })
	p.record(events)
	change.Events = events
	touched := make(map[string]bool, len(events))
	for _, e := range events {
		touched[e.Role] = true
	}
	for _, name := range p.names {
		role := p.roles[name]
		if state := p.stateOf(role.term); state != role.state || touched[name] {
			role.state = state
			change.Roles = append(change.Roles, p.roleRecord(name))
		}
	}
	if first { // all viewers read it
		return readAgain
	}
	return change
}

// putNodes creates events for new changes of nodes.
func (p *snapshot) putNodes(reading reading, events []eventRecord) []eventRecord {
	now := make(map[nodeChange]bool, len(reading.nodes))
	told := p.nodeAt
	if reading.again {
		told = p.nodesTold()
	}
	for _, r := range reading.nodes {
		key := nodeChange{r.Node, r.At.UnixMicro(), r.Status}
		now[key] = true
		if !told[key] {
			events = append(events, eventRecord{
				At: r.At, Kind: eventNode, Node: r.Node, NodeName: r.NodeName, Status: r.Status, Previous: r.Previous, By: r.By,
			})
		}
	}
	if reading.nodes != nil {
		p.nodeAt = now
	}
	return events
}

// nodesTold returns the changes of nodes among the events.
func (p *snapshot) nodesTold() map[nodeChange]bool {
	told := map[nodeChange]bool{}
	for _, e := range p.events {
		if e.Kind == eventNode {
			told[nodeChange{e.Node, e.At.UnixMicro(), e.Status}] = true
		}
	}
	return told
}

// isNews reports whether nodes opened sessions lately.
func (p *snapshot) isNews(nodes []history.NodeChange) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	latest := p.clock().Add(-settleTime)
	return p.past.outages == nil || slices.ContainsFunc(nodes, func(n history.NodeChange) bool { return n.At.After(latest) && opensSession(n) })
}

func (p *snapshot) setOutages(outages []history.Outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.setOutages(outages)
}

// deathOfReturned returns when the first of the dead nodes died that have opened sessions since the
// last read: they may have recorded since why their earlier sessions ended. It is zero if there is none.
func (p *snapshot) deathOfReturned(nodes []history.NodeChange) (earliest time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, n := range nodes {
		if !opensSession(n) || n.Previous != dead || p.past.nodeAt[nodeChange{n.Node, n.At.UnixMicro(), n.Status}] {
			continue
		}
		var died time.Time
		for _, past := range p.past.nodes {
			if past.Node == n.Node && past.Status == dead && past.At.After(died) && past.At.Before(n.At) {
				died = past.At
			}
		}
		if !died.IsZero() && (earliest.IsZero() || died.Before(earliest)) {
			earliest = died
		}
	}
	return earliest
}
