package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/incident"
)

// health returns the most important problem first. The figures are the snapshot's.
func (p *snapshot) health(n nowRecord) health {
	for _, find := range []func(nowRecord) (health, bool){
		p.unreadable, p.openIncident, p.lostLeader, p.seriousWork, p.vacancy, p.criticalAlert, p.silence, p.unreadPart, p.lightWork, p.firing, p.lastIncident,
	} {
		if h, found := find(n); found {
			return h
		}
	}
	return fine(n)
}

// unreadable reports an unreadable database.
func (p *snapshot) unreadable(n nowRecord) (health, bool) {
	switch {
	case p.problem == nil:
		return health{}, false
	case !p.seen:
		return health{Level: critical, Sentence: "The database cannot be read.", Since: n.UnreadSince}, true
	default:
		return health{Level: critical, Sentence: p.cannotBeRead(), Since: p.onClock(p.problem.since), Incident: unreadableID}, true
	}
}

// cannotBeRead is a sentence on a database that has been read before.
func (p *snapshot) cannotBeRead() string {
	text := "The database cannot be read since " + moment(*p.onClock(p.problem.since))
	if p.readAt.Before(p.problem.since) { // there was no viewer, so it may have been down for longer
		text += " and was read last at " + moment(*p.onClock(p.readAt))
	}
	return text + ": " + standing(len(p.names)) + "."
}

// standing describes the roles while the database cannot be read: nodes renew their
// leases there, if they still reach it.
func standing(roles int) string {
	return count(roles, "role stands still if its node cannot reach it either", "roles stand still if their nodes cannot reach it either")
}

// lostLeader reports roles without a leader if the leader of one was lost unplanned. It
// comes before serious faults of work; planned vacancies come after them.
func (p *snapshot) lostLeader(n nowRecord) (health, bool) {
	lost := slices.ContainsFunc(p.names, func(name string) bool {
		r := p.roles[name]
		return r.state == vacant && !incident.Planned(r.term)
	})
	if !lost {
		return health{}, false
	}
	return p.vacancy(n)
}

// vacancy reports roles without a leader.
func (p *snapshot) vacancy(n nowRecord) (health, bool) {
	if n.Vacant == 0 {
		return health{}, false
	}
	return health{Level: critical, Sentence: fmt.Sprintf("No node leads %s.", p.vacantText(n)), Also: blockedText(n) + alertsText(n), Since: p.vacantSince(), UpTo: n.Vacant > 1}, true
}

// vacantSince is when the first of the roles without a leader lost it, if known.
func (p *snapshot) vacantSince() *time.Time {
	var since *time.Time
	for _, name := range p.names {
		if r := p.roles[name]; r.state == vacant && !r.term.Ended.IsZero() && (since == nil || r.term.Ended.Before(*since)) {
			since = &r.term.Ended
		}
	}
	return since
}

// seriousWork reports repeatedly failing processors and schedules.
func (p *snapshot) seriousWork(n nowRecord) (health, bool) {
	return p.troubledWork(n, critical)
}

func (p *snapshot) troubledWork(n nowRecord, level string) (health, bool) {
	text, about := p.work.worst(level)
	text += asOf(n.WorkUnreadSince)
	if n.Vacant > 0 {
		text += " " + count(n.Vacant, "role has", "roles have") + " no leader."
	}
	return health{Level: level, Sentence: text + alertsText(n), Job: &about}, about.Name != ""
}

// criticalAlert reports the first firing critical alert.
func (p *snapshot) criticalAlert(n nowRecord) (health, bool) {
	for _, a := range p.alerts {
		if a.State != "firing" || a.Severity != critical || a.silenced() {
			continue
		}
		text, also := quoted(a.Name)+" fires", ""
		if a.Summary != "" {
			text += ": " + quotedUpTo(strings.TrimRight(a.Summary, "."), mostErrorRunes)
		}
		if others := n.Firing - 1; others > 0 {
			also = " " + count(others, "other alert fires too", "other alerts fire too") + "."
		}
		return health{Level: critical, Sentence: text + "." + asOf(n.AlertsUnreadSince), Also: also, Since: when(a.Since)}, true
	}
	return health{}, false
}

// silence reports nodes without a heartbeat.
func (p *snapshot) silence(n nowRecord) (health, bool) {
	var nodes []string
	for _, m := range p.shownMembers() {
		if p.nodeState(m) == silent {
			nodes = append(nodes, m.Name)
		}
	}
	verb := "is"
	if len(nodes) > 1 {
		verb = "are"
	}
	return health{Level: warning, Sentence: fmt.Sprintf("%s %s silent: %s still led, until the lease ends.", listed(nodes), verb,
		count(n.Silent, "role is", "roles are")) + alertsText(n)}, len(nodes) > 0
}

// lightWork reports processors and schedules after a failed last attempt, and dead
// letters.
func (p *snapshot) lightWork(n nowRecord) (health, bool) {
	return p.troubledWork(n, warning)
}

// firing reports alerts below critical.
func (p *snapshot) firing(n nowRecord) (health, bool) {
	var names []string
	for _, a := range p.alerts {
		if a.State == "firing" && !a.silenced() && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	verb := "fires"
	if len(names) > 1 {
		verb = "fire"
	}
	return health{Level: warning, Sentence: fmt.Sprintf("All roles have a leader, and %s %s.", listed(names), verb) + asOf(n.AlertsUnreadSince)}, len(names) > 0
}

// fine describes a cluster without a problem, or one without a second node. Roles at rest have
// no leader and need none.
func fine(n nowRecord) health {
	roles := n.Roles - n.AtRest
	rest := ""
	if n.AtRest > 0 {
		rest = " " + count(n.AtRest, "role is", "roles are") + " at rest."
	}
	switch {
	case n.Roles == 0 && n.Living == 0:
		return health{Level: good, Sentence: "No node has joined yet: start a node."}
	case n.Roles == 0:
		return health{Level: good, Sentence: fmt.Sprintf("%s, and no role has been led yet.", count(n.Living, "live node", "live nodes"))}
	case roles == 0:
		return health{Level: good, Sentence: "No role needs a leader:" + rest}
	case n.Living == 1:
		return health{Level: warning, Sentence: fmt.Sprintf("All roles have a leader, but there is only one node: no other node would take over %s.%s", itsRoles(roles), rest)}
	default:
		return health{Level: good, Sentence: fmt.Sprintf("All roles have a leader: %s, %s.%s", count(roles, "role", "roles"), count(n.Living, "node", "nodes"), rest)}
	}
}

func itsRoles(n int) string {
	if n == 1 {
		return "its role"
	}
	return fmt.Sprintf("its %d roles", n)
}

// alertsText is a sentence on the firing alerts, after a space, or nothing.
func alertsText(n nowRecord) string {
	if n.Firing == 0 {
		return ""
	}
	return " " + count(n.Firing, "alert fires", "alerts fire") + "."
}

func (p *snapshot) vacantText(n nowRecord) string {
	var names []string
	for _, name := range p.names {
		if p.roles[name].state == vacant {
			if names = append(names, name); len(names) == mostNamed {
				break
			}
		}
	}
	if n.Vacant > len(names) {
		return fmt.Sprintf("%d of %d roles", n.Vacant, n.Roles)
	}
	return listed(names)
}

// openIncident reports the first continuing fault.
func (p *snapshot) openIncident(n nowRecord) (health, bool) {
	for _, r := range p.found.records {
		if r.Unplanned && r.Ended == nil && r.Vacant > 0 {
			also := ""
			if others := n.Vacant - r.Vacant; others > 0 {
				also = " " + count(others, "other role has", "other roles have") + " no leader."
			}
			return health{Level: critical, Sentence: r.Sentence, Also: also + blockedText(n) + alertsText(n), Since: &r.Began, Incident: r.ID}, true
		}
	}
	return health{}, false
}

// lastIncident reports a recently ended fault.
func (p *snapshot) lastIncident(n nowRecord) (health, bool) {
	for _, r := range p.found.records {
		if !r.Unplanned || r.Ended == nil {
			continue
		}
		if n.Clock.Sub(*r.Ended) > recentIncident {
			break
		}
		text := r.Sentence
		if n.Living == 1 {
			text += " There is only one node now."
		}
		return health{Level: warning, Sentence: text + alertsText(n), Incident: r.ID}, true
	}
	return health{}, false
}

// unreadPart reports an unreadable part of the state.
func (*snapshot) unreadPart(n nowRecord) (health, bool) {
	what, since := "Processors and schedules", n.WorkUnreadSince
	if since == nil {
		what, since = "The alerts", n.AlertsUnreadSince
	}
	if since == nil {
		return health{}, false
	}
	return health{Level: warning, Sentence: what + " cannot be read, and were read last at " + moment(*since) + ": they may have changed." + alertsText(n), Since: since}, true
}
