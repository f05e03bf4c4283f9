package dashboard

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// The bounds on a snapshot's records of the past.
const (
	maxEvents = 5_000
	maxTerms  = 20_000
)

// snapshot is the last known state of the installation. The watch writes it, and all
// requests read it.
type snapshot struct {
	mu      sync.RWMutex
	seen    bool // the database has been read once
	problem *problem
	readAt  time.Time
	offset  time.Duration // of the database's clock to this process's
	looks   uint64        // at terms

	roles     map[string]*role
	names     []string // of the roles, sorted, without retired ones
	members   []tenure.Member
	byNode    map[uuid.UUID]int   // index in members
	replaced  map[uuid.UUID]bool  // dead nodes that came back under their name
	events    []eventRecord       // oldest first
	number    uint64              // of the last event
	failovers []failoverRecord    // oldest first
	overall   overall             // of them
	nodeAt    map[nodeChange]bool // changes of nodes already among the events, as of the last read
	past      past
	found     *found
	work      workRecord
	alerts    []Alert
	blocked   []blockedRecord // as read last
	unread    struct{ work, alerts unread }
	changed   chan struct{} // closed at the next change
}

// problem is why the database cannot be read, and when it was read last.
type problem struct {
	err   error
	since time.Time
}

// role is the last term of a role, the one before it, and its last published state.
type role struct {
	term    history.Term
	before  history.Term // zero if it is not known
	state   string
	look    uint64 // the last read that contained its term
	retired bool
}

// isLed reports whether the role has a leader.
func (r *role) isLed() bool { return r.state == led || r.state == silent }

// nodeChange identifies a change of a node.
type nodeChange struct {
	node   uuid.UUID
	at     int64 // in microseconds since 1970
	status string
}

func newSnapshot() *snapshot {
	return &snapshot{
		work: workRecord{Processors: []processorRecord{}, Schedules: []scheduleRecord{}, Retention: []retentionRecord{}}, alerts: []Alert{}, past: newPast(), found: newFound(nil), roles: map[string]*role{}, nodeAt: map[nodeChange]bool{}, changed: make(chan struct{})}
}

// reading is the result of one read of the database.
type reading struct {
	members []tenure.Member
	clock   time.Time      // of the database; zero if no node reports it
	terms   []history.Term // nil if they were not read
	whole   bool           // the last term of every role is among them
	nodes   []history.NodeChange
	again   bool // it contains earlier changes of nodes than the last read
}

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
	p.replaced = roster.FindReplaced(r.members)
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

// record numbers events and keeps them.
func (p *snapshot) record(events []eventRecord) {
	for i := range events {
		p.number++
		events[i].Number = p.number
	}
	p.events = append(p.events, events...)
	if len(p.events) > maxEvents*5/4 {
		p.events = slices.Clone(p.events[len(p.events)-maxEvents:])
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// note records an event of this process, at the current time.
func (p *snapshot) note(event eventRecord) eventRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	event.At = p.clock()
	events := []eventRecord{event}
	p.record(events)
	return events[0]
}

func eventOfBegin(before, t history.Term) eventRecord {
	return eventRecord{At: t.Began, Kind: eventBegan, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Without: gapBefore(before.Reason, t).Without}
}

func eventOfEnd(t history.Term, at time.Time) eventRecord {
	return eventRecord{
		At: at, Kind: eventEnded, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Reason: string(t.Reason), By: t.By,
	}
}

func (p *snapshot) roleRecord(name string) roleRecord {
	r := p.roles[name]
	t := r.term
	record := roleRecord{
		Name: name, State: r.state, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Began: t.Began,
		Reason: string(t.Reason), By: t.By, Without: gapBefore(r.before.Reason, t).Without,
		Previous: r.before.NodeName, PreviousReason: string(r.before.Reason), PreviousBy: r.before.By,
	}
	if !t.Ended.IsZero() {
		record.Ended = &t.Ended
	}
	if m, ok := p.member(t.Node); ok {
		record.Host = m.Host
		if m.Name != t.NodeName {
			record.Agent = m.Name
		}
	}
	return record
}

// now is the cluster at a glance.
func (p *snapshot) now() nowRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	shown := p.shownMembers()
	n := nowRecord{Roles: len(p.names), AllNodes: len(shown), Clock: p.clock(), Nodes: []nodeRecord{}}
	if p.problem != nil {
		since := p.problem.since.Add(p.offset).Round(0)
		n.UnreadSince = &since
	}
	n.WorkUnreadSince, n.AlertsUnreadSince = p.unread.work.at(p.offset), p.unread.alerts.at(p.offset)
	leads := p.leads()
	for _, name := range p.names {
		switch p.roles[name].state {
		case led:
			n.Led++
		case silent:
			n.Silent++
		case atRest:
			n.AtRest++
		default:
			n.Vacant++
		}
	}
	for _, m := range shown {
		if p.nodeState(m) != dead {
			n.Living++
		}
	}
	for _, m := range p.nodesToPublish(shown, leads) {
		n.Nodes = append(n.Nodes, p.nodeRecord(m, leads))
	}
	for _, a := range p.alerts {
		switch {
		case a.State != "firing":
		case a.silenced():
			n.Silenced++
		default:
			n.Firing++
		}
	}
	n.Blocked = p.blockedNow()
	n.Health = p.health(n)
	return n
}

// failed records a failure to read the database.
func (p *snapshot) failed(err error) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.problem != nil {
		first = errors.Is(p.problem.err, errRested)
		p.problem.err = err
		return first
	}
	p.problem = &problem{err, time.Now()}
	if p.seen {
		p.problem.since = p.readAt // what is shown is as of then
	}
	return true
}

// errRested is the problem until the first read after a time without viewers.
var errRested = errors.New("the database was not read while there was no viewer")

// resume notes the begin of a read after a time without viewers. The shown state is
// older: it is not shown as the present one if the read does not succeed.
func (p *snapshot) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen {
		p.problem = &problem{errRested, time.Now()}
	}
}

func (p *snapshot) clockNow() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.clock()
}

// clock is the time by the database's clock.
func (p *snapshot) clock() time.Time { return time.Now().Add(p.offset).Round(0) }
