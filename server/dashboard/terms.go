package dashboard

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/history"
)

// termUpdate is the changes by a reading of terms.
type termUpdate struct {
	events    []eventRecord
	rewound   bool // a server has taken over that lacks the last terms of the previous one
	fewer     bool // roles were retired
	corrected bool // the reason of an end is another one now
}

// putTerms brings the roles up to date.
func (p *snapshot) putTerms(terms []history.Term, events []eventRecord) termUpdate {
	p.looks++
	slices.SortStableFunc(terms, func(a, b history.Term) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Term, b.Term))
	})
	u := termUpdate{events: events}
	for _, t := range terms {
		p.putTerm(t, &u)
	}
	if u.fewer {
		p.names = slices.DeleteFunc(p.names, func(name string) bool { return p.roles[name].retired })
	}
	slices.Sort(p.names)
	slices.SortStableFunc(p.failovers, func(a, b failoverRecord) int { return a.At.Compare(b.At) })
	if len(p.failovers) > maxTerms*5/4 {
		p.failovers = slices.Clone(p.failovers[len(p.failovers)-maxTerms:])
	}
	return u
}

// putTerm brings one role up to date with one of its terms.
func (p *snapshot) putTerm(t history.Term, u *termUpdate) {
	r := p.roles[t.Role]
	if r == nil {
		r = &role{retired: true} // until its last term shows otherwise
		p.roles[t.Role] = r
	}
	r.look = p.looks
	another := isAnother(r.term, t)
	u.rewound = u.rewound || another
	if retired := !t.Retired.IsZero(); retired != r.retired && (t.Term >= r.term.Term || another) {
		r.retired = retired
		if u.fewer = u.fewer || retired; !retired {
			p.names = append(p.names, t.Role)
		}
	}
	switch {
	case t.Term > r.term.Term, another:
		p.beginTerm(r, t, u)
	case t.Term < r.term.Term || r.term.Ended.Equal(t.Ended) || t.Ended.IsZero():
		// It was published before, even if the row of the node with the time of its
		// death is gone.
		u.corrected = p.correct(r, t) || u.corrected
		return
	}
	if !t.Ended.IsZero() {
		u.events = append(u.events, eventOfEnd(t, t.Ended))
	}
	r.term = t
}

// correct takes over the reason of the end of a term that is known with another one: a
// node records after its return that it had been silent. Figures derived from the reason follow.
func (p *snapshot) correct(r *role, t history.Term) bool {
	at, known := p.past.termAt[termKey{t.Role, t.Term}]
	if !known || t.Ended.IsZero() || p.past.terms[at].Reason == t.Reason {
		return false
	}
	switch t.Term {
	case r.term.Term:
		r.term = t
	case r.before.Term:
		r.before = t
	}
	next, found := p.termAfter(t)
	if !found {
		next.Term = -1 // no event or failover has it
	}
	changed := failoverOf(t, next)
	for i, f := range p.failovers {
		if f.Role == t.Role && f.Term == next.Term && changed.Without != nil {
			p.failovers[i] = changed
		}
	}
	p.correctEvents(t, changed)
	return true
}

// correctEvents changes the events of the end of a term and of the next begin.
func (p *snapshot) correctEvents(t history.Term, changed failoverRecord) {
	for i, e := range p.events {
		switch {
		case e.Role != t.Role:
		case e.Kind == eventEnded && e.Term == t.Term:
			p.events[i].Reason = string(t.Reason)
		case e.Kind == eventBegan && e.Term == changed.Term:
			p.events[i].Without = changed.Without
		}
	}
}

// termAfter returns the term that followed another one of its role and that was a failover, if
// it is known.
func (p *snapshot) termAfter(t history.Term) (next history.Term, found bool) {
	first := int64(math.MaxInt64)
	for _, f := range p.failovers {
		if f.Role == t.Role && f.Term > t.Term {
			first = min(first, f.Term)
		}
	}
	at, found := p.past.termAt[termKey{t.Role, first}]
	if found {
		next = p.past.terms[at]
	}
	return next, found
}

// isAnother reports whether a term cannot follow the last known one of its role, so that
// the server lacks that one.
func isAnother(last, t history.Term) bool {
	return t.Term == last.Term && (t.Node != last.Node || t.Incarnation != last.Incarnation) ||
		t.Term < last.Term && t.Ended.IsZero() // an open term is the last one
}

// beginTerm creates the events of a new term of a role.
func (p *snapshot) beginTerm(r *role, t history.Term, u *termUpdate) {
	if r.term.Term > 0 && r.term.Ended.IsZero() { // the row with its end is gone
		u.events = append(u.events, eventOfEnd(r.term, t.Began.Add(-max(0, t.PrecedingVacancy))))
	}
	r.before = r.term
	u.events = append(u.events, eventOfBegin(r.before, t))
	if f := failoverOf(r.before, t); f.Without != nil {
		p.failovers = append(p.failovers, f)
	}
}

// drop reports whether the row of a role's last term is gone, and after a complete
// reading removes such roles.
func (p *snapshot) drop(whole bool) (missing bool) {
	gone := func(name string) bool {
		r := p.roles[name]
		return r.look != p.looks && (whole || r.term.Ended.IsZero()) // an open term is always read
	}
	missing = slices.ContainsFunc(p.names, gone)
	if !missing || !whole {
		return missing
	}
	p.names = slices.DeleteFunc(p.names, func(name string) bool {
		if gone(name) {
			delete(p.roles, name)
			return true
		}
		return false
	})
	return true
}

func eventOfBegin(before, t history.Term) eventRecord {
	return eventRecord{At: t.Began, Kind: eventBegan, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Without: gapBefore(before.Reason, t).Without}
}

func eventOfEnd(t history.Term, at time.Time) eventRecord {
	return eventRecord{
		At: at, Kind: eventEnded, Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Reason: string(t.Reason), By: t.By,
	}
}
