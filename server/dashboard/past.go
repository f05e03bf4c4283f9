package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
)

// The bounds on a snapshot's records of the past.
const (
	maxEvents = 5_000
	maxTerms  = 20_000
)

// settleTime is for how long outages are read after nodes opened sessions: the ends of
// terms are recorded when other nodes have taken over.
const settleTime = 30 * time.Second

// past is the records for finding incidents. It is part of a snapshot, under its mutex.
type past struct {
	terms   []history.Term // without order
	termAt  map[termKey]int
	nodes   []history.NodeChange
	nodeAt  map[nodeChange]bool
	outages []history.Outage
	dirty   bool      // more was added since the last grouping
	oldest  time.Time // earlier terms have been dropped
}

// termKey identifies a term.
type termKey struct {
	role string
	term int64
}

// nodeChange identifies a change of a node.
type nodeChange struct {
	node   uuid.UUID
	at     int64 // in microseconds since 1970
	status string
}

// maxNodeChanges bounds the changes of nodes for finding incidents.
const maxNodeChanges = 10_000

func newPast() past {
	return past{termAt: map[termKey]int{}, nodeAt: map[nodeChange]bool{}}
}

// add adds the records of a reading. Known records are updated. If rewound is true, known
// terms may no longer exist.
func (p *past) add(r reading, rewound bool) {
	if rewound {
		outages := p.outages
		*p = newPast()
		p.outages, p.dirty = outages, true
	}
	for _, t := range r.terms {
		p.addTerm(t)
	}
	for _, n := range r.nodes {
		key := nodeChange{n.Node, n.At.UnixMicro(), n.Status}
		if !p.nodeAt[key] {
			p.nodeAt[key], p.dirty = true, true
			p.nodes = append(p.nodes, n)
		}
	}
	p.makeRoom()
}

func (p *past) addTerm(t history.Term) {
	key := termKey{t.Role, t.Term}
	i, known := p.termAt[key]
	switch {
	case !known && changedAt(t).Before(p.oldest): // it has no place, until it ends
		return
	case !known:
		p.termAt[key] = len(p.terms)
		p.terms = append(p.terms, t)
	case p.terms[i] != t:
		p.terms[i] = t
	default:
		return
	}
	p.dirty = true
}

// changedAt is when a term ended, or began if it is open.
func changedAt(t history.Term) time.Time {
	if t.Ended.IsZero() {
		return t.Began
	}
	return t.Ended
}

// makeRoom drops the oldest records.
func (p *past) makeRoom() {
	if len(p.terms) > maxTerms*5/4 {
		slices.SortStableFunc(p.terms, func(a, b history.Term) int { return changedAt(a).Compare(changedAt(b)) })
		p.terms = slices.Clone(p.terms[len(p.terms)-maxTerms:])
		p.oldest = changedAt(p.terms[0])
		clear(p.termAt)
		for i, t := range p.terms {
			p.termAt[termKey{t.Role, t.Term}] = i
		}
	}
	if len(p.nodes) > maxNodeChanges*5/4 {
		slices.SortStableFunc(p.nodes, func(a, b history.NodeChange) int { return a.At.Compare(b.At) })
		p.nodes = slices.Clone(p.nodes[len(p.nodes)-maxNodeChanges:])
		clear(p.nodeAt)
		for _, n := range p.nodes {
			p.nodeAt[nodeChange{n.Node, n.At.UnixMicro(), n.Status}] = true
		}
	}
}

// maxOutages is how many outages are read.
const maxOutages = 200

// setOutages replaces the outages.
func (p *past) setOutages(outages []history.Outage) {
	same := slices.EqualFunc(p.outages, outages, func(a, b history.Outage) bool {
		return a.Began.Equal(b.Began) && a.Ended.Equal(b.Ended) && a.ServerChanged == b.ServerChanged && slices.Equal(a.Roles, b.Roles)
	})
	p.dirty = p.dirty || !same
	p.outages = outages
}

// changes returns a copy for a grouping.
func (p *past) changes() incident.Changes {
	return incident.Changes{Terms: slices.Clone(p.terms), Nodes: slices.Clone(p.nodes), Outages: slices.Clone(p.outages)}
}

// opensSession reports whether a node opened a session: with the first one after an
// outage, the outage is recorded.
func opensSession(n history.NodeChange) bool {
	return n.Status == string(tenure.StatusActive) || n.Status == string(tenure.StatusJoining)
}

// byRole returns the terms of each role, oldest first.
func (p *past) byRole(wanted func(role string) bool) map[string][]history.Term {
	roles := map[string][]history.Term{}
	for _, t := range p.terms {
		if wanted(t.Role) {
			roles[t.Role] = append(roles[t.Role], t)
		}
	}
	for _, terms := range roles {
		slices.SortFunc(terms, func(a, b history.Term) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Term, b.Term)) })
	}
	return roles
}
