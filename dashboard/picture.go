package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// The bounds on what a picture keeps of the past.
const (
	maxEvents = 5_000
	maxTerms  = 20_000
)

// picture is what was seen of the installation. The watch writes it, everybody
// reads it.
type picture struct {
	mu      sync.RWMutex
	seen    bool // there was a first look
	problem *problem
	readAt  time.Time

	roles     map[string]*role
	names     []string // of the roles that are not retired, sorted
	members   []tenure.Member
	byNode    map[uuid.UUID]int   // index in members
	events    []eventRecord       // oldest first
	number    uint64              // of the last event
	failovers []failoverRecord    // oldest first
	nodeAt    map[nodeChange]bool // changes of nodes that became events, of the last look
	work      workRecord
	alerts    []Alert
	news      chan struct{} // closed at the next change
}

// problem is why the database cannot be read, and since when.
type problem struct {
	err   error
	since time.Time
}

// role is the last term of a role, and how that was told last.
type role struct {
	term    postgres.TermRecord
	state   string
	retired bool
}

// nodeChange tells a change of a node from others.
type nodeChange struct {
	node   uuid.UUID
	at     int64 // in microseconds since 1970
	status string
}

func newPicture() *picture {
	return &picture{
		work: workRecord{Processors: []processorRecord{}, Schedules: []scheduleRecord{}}, alerts: []Alert{}, roles: map[string]*role{}, nodeAt: map[nodeChange]bool{}, news: make(chan struct{})}
}

// reading is one look at the database.
type reading struct {
	members []tenure.Member
	terms   []postgres.TermRecord // nil if they were not read
	nodes   []postgres.NodeRecord
}

// update puts a reading into the picture and returns what has changed.
func (p *picture) update(r reading) changeRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.seen
	p.seen, p.problem, p.readAt = true, nil, time.Now()
	p.members, p.byNode = r.members, make(map[uuid.UUID]int, len(r.members))
	for i, m := range r.members {
		p.byNode[m.ID] = i
	}
	events := p.putNodes(r.nodes, []eventRecord{}) // an empty list, not none, in JSON
	events, fewer := p.putTerms(r.terms, events)
	slices.SortStableFunc(events, func(a, b eventRecord) int { return a.At.Compare(b.At) })
	p.record(events)
	change := changeRecord{Roles: []roleRecord{}, Events: events}
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
	if first || fewer { // everybody reads it
		return changeRecord{Roles: []roleRecord{}, Events: []eventRecord{}, More: true}
	}
	return change
}

// putTerms brings the roles up to date, and tells whether there are fewer.
func (p *picture) putTerms(terms []postgres.TermRecord, events []eventRecord) (all []eventRecord, fewer bool) {
	slices.SortFunc(terms, func(a, b postgres.TermRecord) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Term, b.Term))
	})
	for _, t := range terms {
		r := p.roles[t.Role]
		if r == nil {
			r = &role{retired: true} // until its last term says something else
			p.roles[t.Role] = r
		}
		if retired := !t.Retired.IsZero(); t.Term >= r.term.Term && retired != r.retired {
			r.retired = retired
			if fewer = fewer || retired; !retired {
				p.names = append(p.names, t.Role)
			}
		}
		switch {
		case t.Term > r.term.Term:
			if r.term.Term > 0 && r.term.Ended.IsZero() { // the row is gone that said how it ended
				events = append(events, eventOfEnd(r.term, t.Began.Add(-max(0, t.Vacant))))
			}
			events = append(events, eventOfBegin(t))
			if t.Vacant >= 0 {
				p.failovers = append(p.failovers, failoverOf(r.term, t))
			}
		case t.Term < r.term.Term || r.term.Ended.Equal(t.Ended) || t.Ended.IsZero():
			// It was told before; also where the row of the node is gone that said
			// when it died.
			continue
		}
		if !t.Ended.IsZero() {
			events = append(events, eventOfEnd(t, t.Ended))
		}
		r.term = t
	}
	if fewer {
		p.names = slices.DeleteFunc(p.names, func(name string) bool { return p.roles[name].retired })
	}
	slices.Sort(p.names)
	slices.SortStableFunc(p.failovers, func(a, b failoverRecord) int { return a.At.Compare(b.At) })
	if len(p.failovers) > maxTerms*5/4 {
		p.failovers = slices.Clone(p.failovers[len(p.failovers)-maxTerms:])
	}
	return events, fewer
}

// putNodes makes events of the changes of nodes that were not seen before.
func (p *picture) putNodes(records []postgres.NodeRecord, events []eventRecord) []eventRecord {
	now := make(map[nodeChange]bool, len(records))
	for _, r := range records {
		key := nodeChange{r.Node, r.At.UnixMicro(), r.Status}
		now[key] = true
		if !p.nodeAt[key] {
			events = append(events, eventRecord{
				At: r.At, Kind: eventNode, Node: r.Node, NodeName: r.NodeName, Status: r.Status, Previous: r.Previous, By: r.By,
			})
		}
	}
	if records != nil {
		p.nodeAt = now
	}
	return events
}

// record numbers events and keeps them.
func (p *picture) record(events []eventRecord) {
	for i := range events {
		p.number++
		events[i].Number = p.number
	}
	p.events = append(p.events, events...)
	if len(p.events) > maxEvents*5/4 {
		p.events = slices.Clone(p.events[len(p.events)-maxEvents:])
	}
	close(p.news)
	p.news = make(chan struct{})
}

// note records an event of this process itself.
func (p *picture) note(event eventRecord) eventRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := []eventRecord{event}
	p.record(events)
	return events[0]
}

func eventOfBegin(t postgres.TermRecord) eventRecord {
	return eventRecord{At: t.Began, Kind: eventBegan, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Vacant: known(t.Vacant)}
}

func eventOfEnd(t postgres.TermRecord, at time.Time) eventRecord {
	return eventRecord{
		At: at, Kind: eventEnded, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Reason: string(t.Reason), By: t.By,
	}
}

// stateOf tells whether a term still stands. It does as long as its node's lease
// runs, and the node has not been given another session.
func (p *picture) stateOf(t postgres.TermRecord) string {
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

func (p *picture) member(id uuid.UUID) (tenure.Member, bool) {
	i, ok := p.byNode[id]
	if !ok {
		return tenure.Member{}, false
	}
	return p.members[i], true
}

// nodeState is a node's status, or silent if half its lease is over: heartbeats
// come each third of it.
func (p *picture) nodeState(m tenure.Member) string {
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

// quiet is for how long a node has not been heard of. While the database cannot
// be read, nobody knows what the nodes tell it: their age stands still.
func (p *picture) quiet(m tenure.Member) time.Duration {
	if p.problem != nil {
		return m.SilentFor
	}
	return m.SilentFor + time.Since(p.readAt)
}

func (p *picture) roleRecord(name string) roleRecord {
	r := p.roles[name]
	t := r.term
	record := roleRecord{
		Name: name, State: r.state, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Began: t.Began,
		Reason: string(t.Reason), By: t.By, Vacant: known(t.Vacant),
	}
	if !t.Ended.IsZero() {
		record.Ended = &t.Ended
	}
	if m, ok := p.member(t.Node); ok {
		record.Host = m.Host
	}
	return record
}

// now is the cluster at a glance.
func (p *picture) now() nowRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := nowRecord{Roles: len(p.names), AllNodes: len(p.members), ReadAt: p.readAt, Nodes: []nodeRecord{}}
	leads := p.leads()
	for _, name := range p.names {
		switch p.roles[name].state {
		case led:
			n.Led++
		case silent:
			n.Silent++
		default:
			n.Vacant++
		}
	}
	for _, m := range p.members {
		if p.nodeState(m) != dead {
			n.Living++
		}
		if len(n.Nodes) < maxNodesTold {
			n.Nodes = append(n.Nodes, p.nodeRecord(m, leads))
		}
	}
	for _, a := range p.alerts {
		if a.State == "firing" {
			n.Firing++
		}
	}
	n.Health = p.health(n)
	return n
}

// leads counts the roles that nodes lead.
func (p *picture) leads() map[uuid.UUID]int {
	counts := map[uuid.UUID]int{}
	for _, name := range p.names {
		if r := p.roles[name]; r.state != vacant {
			counts[r.term.Node]++
		}
	}
	return counts
}

func (p *picture) nodeRecord(m tenure.Member, leads map[uuid.UUID]int) nodeRecord {
	return nodeRecord{
		ID: m.ID, Name: m.Name, Host: m.Host, Address: m.Address, Version: m.Version, State: p.nodeState(m), Drained: m.Drained,
		Leads: leads[m.ID], Load: m.Load.Mean(), CPU: m.CPU, Memory: m.Memory, Clients: m.Connections, Jobs: m.Jobs, InFlight: m.InFlight,
		StartedAt: m.StartedAt, Silent: seconds(p.quiet(m)), Lease: seconds(m.Lease), Labels: m.Labels, Roles: m.Roles,
	}
}

// failed notes that the database could not be read.
func (p *picture) failed(err error) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.problem != nil {
		p.problem.err = err
		return false
	}
	p.problem = &problem{err, time.Now()}
	return true
}
