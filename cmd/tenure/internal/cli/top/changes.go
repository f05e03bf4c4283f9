package top

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
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
		name := console.Flatten(r.last.Role)
		switch {
		case r.leader != nil && (old.leader == nil || old.leader.Term != r.leader.Term):
			text := fmt.Sprintf("%s leads %s, term %d", console.Flatten(r.leader.NodeName), name, r.leader.Term)
			if old.leader != nil {
				text += ", after " + console.Flatten(old.leader.NodeName)
			}
			if vacant := r.last.PrecedingVacancy; r.last.Term == r.leader.Term && vacant >= 0 {
				text += ", vacant for " + vacant.Round(time.Millisecond).String()
			}
			add(false, "%s", text)
		case r.leader == nil && old.leader != nil:
			add(true, "%s has no leader: the term of %s ended, %s", name, console.Flatten(old.leader.NodeName), console.OrDash(string(r.last.Reason)))
		}
	}
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
	text := fmt.Sprintf("outage: no node reached the database for %s from %s; roles without a working leader: %d",
		console.SpellDuration(o.Ended.Sub(o.Began)), console.ShortTime(o.Began), len(o.Roles))
	return []event{{o.Ended, text, true}}
}

func statusText(m tenure.Member) string {
	if m.Status == tenure.StatusDraining && m.Drained {
		return "drained"
	}
	return string(m.Status)
}
