package dashboard

import (
	"cmp"
	"math"
	"strings"
	"time"
)

func (p *snapshot) roleRecord(name string) roleRecord {
	r := p.roles[name]
	t := r.term
	record := roleRecord{
		Name: name, State: r.state, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Began: t.Began,
		Reason: string(t.Reason), By: t.By, Cause: t.Cause, Without: gapBefore(r.before.Reason, t).Without,
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

// order compares roles by one of their columns. Under the mutex.
func (p *snapshot) order(by string) func(a, b string) int {
	urgency := map[string]int{vacant: 0, silent: 1, led: 2, atRest: 3}
	return func(a, b string) int {
		left, right := p.roles[a], p.roles[b]
		switch by {
		case "leader":
			return strings.Compare(left.term.NodeName, right.term.NodeName)
		case "term":
			return cmp.Compare(left.term.Term, right.term.Term)
		case "began":
			return right.term.Began.Compare(left.term.Began)
		case "name":
			return 0 // they are in this order
		default:
			return cmp.Or(cmp.Compare(urgency[left.state], urgency[right.state]), compareVacant(left, right))
		}
	}
}

// compareVacant orders vacant roles by when they lost their leaders, the earliest first.
// Roles with an unknown time come last. So the first vacancy stays on top.
func compareVacant(a, b *role) int {
	if a.state != vacant || b.state != vacant {
		return 0
	}
	return cmp.Compare(unknownLast(a.term.Ended), unknownLast(b.term.Ended))
}

// unknownLast returns a time as a number, with the zero time after all others.
func unknownLast(at time.Time) int64 {
	if at.IsZero() {
		return math.MaxInt64
	}
	return at.UnixNano()
}

// role returns the current state of a role.
func (p *snapshot) role(name string) (roleRecord, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.roles[name] == nil {
		return roleRecord{}, false
	}
	return p.roleRecord(name), true
}
