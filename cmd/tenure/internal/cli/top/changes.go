package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/console"
)

// event is a change between two snapshots.
type event struct {
	at   time.Time
	text string
	bad  bool // a role lost its leader, or a node died
}

// changes lists the differences between two snapshots.
func changes(before, after snapshot, at time.Time) []event {
	var all []event
	add := func(bad bool, format string, args ...any) {
		all = append(all, event{at, fmt.Sprintf(format, args...), bad})
	}
	all = append(all, outages(before, after)...)
	roleChanges(before, after, add)
	nodeChanges(before, after, add)
	return all
}

// roleChanges adds new and lost leaders.
func roleChanges(before, after snapshot, add func(bad bool, format string, args ...any)) {
	known := map[string]role{}
	for _, r := range before.roles {
		known[r.last.Role] = r
	}
	for _, r := range after.roles {
		old := known[r.last.Role]
		switch {
		case r.leader != nil && (old.leader == nil || old.leader.Term != r.leader.Term):
			after := ""
			if old.leader != nil {
				after = ", after " + console.Flatten(old.leader.NodeName)
			}
			add(false, "%s", leads(r, after))
		case r.leader == nil && old.leader != nil:
			add(true, "%s", lost(r, old.leader.NodeName))
		}
	}
}

// leads says which node leads a role, after the node before, and for how long the role had no
// leader. After a freeze, its lock was held for all but the end of the silence.
func leads(r role, after string) string {
	text := fmt.Sprintf("%s leads %s, term %d%s", console.Flatten(r.leader.NodeName), console.Flatten(r.last.Role), r.leader.Term, after)
	if r.last.Term != r.leader.Term {
		return text
	}
	if vacant := r.last.PrecedingVacancy; vacant >= 0 {
		text += ", vacant for " + printable.Duration(vacant)
	}
	if silent := r.last.PrecedingSilence; silent > r.last.PrecedingVacancy {
		text += ", silent for " + printable.Duration(silent)
	}
	return text
}

// lost says why a role has no leader.
func lost(r role, leader string) string {
	return fmt.Sprintf("%s has no leader: the term of %s ended (%s)", console.Flatten(r.last.Role), console.Flatten(leader), console.OrDash(string(r.last.Reason)))
}

// recent lists the latest change of each role and the deaths of nodes before the first reading.
func recent(s snapshot, now time.Time) []event {
	all := outages(snapshot{}, s)
	add := func(at time.Time, bad bool, text string) {
		if now.Sub(at) < outageAge {
			all = append(all, event{at, text, bad})
		}
	}
	for _, r := range s.roles {
		switch {
		case r.leader != nil:
			add(r.leader.AcquiredAt, false, leads(r, ""))
		case !r.last.AtRest(now):
			add(r.last.Ended, true, lost(r, r.last.NodeName))
		}
	}
	for _, m := range s.members {
		if m.Status == tenure.StatusDead {
			add(m.LastHeartbeat, true, fmt.Sprintf("node %s is dead; this was its last heartbeat", console.Flatten(m.Name)))
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return a.at.Compare(b.at) })
	return all[max(0, len(all)-maxEvents):]
}

// nodeChanges adds new, changed and gone nodes.
func nodeChanges(before, after snapshot, add func(bad bool, format string, args ...any)) {
	nodes := map[string]tenure.Member{}
	for _, m := range before.members {
		nodes[m.ID.String()] = m
	}
	for _, m := range after.members {
		old, there := nodes[m.ID.String()]
		delete(nodes, m.ID.String())
		name, status := console.Flatten(m.Name), statusText(m)
		switch {
		case !there:
			add(false, "node %s is here: %s", name, status)
		case statusText(old) != status:
			add(m.Status == tenure.StatusDead, "node %s is %s, was %s", name, status, statusText(old))
		}
	}
	for _, m := range before.members {
		if _, left := nodes[m.ID.String()]; left && m.Status != tenure.StatusDead {
			add(false, "node %s has left", console.Flatten(m.Name))
		}
	}
}

// outages returns an outage of the database missing in the earlier snapshot.
func outages(before, after snapshot) []event {
	o := after.outage
	if o == nil || before.outage != nil && before.outage.Began.Equal(o.Began) {
		return nil
	}
	text := fmt.Sprintf("no node reached the database for %s; roles that stood still: %d", console.SpellDuration(o.Ended.Sub(o.Began)), len(o.Roles))
	return []event{{o.Ended, text, true}}
}

func statusText(m tenure.Member) string {
	if m.Status == tenure.StatusDraining && m.Drained {
		return "drained"
	}
	return string(m.Status)
}
