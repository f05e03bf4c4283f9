package alerts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/postgres"
)

const (
	// recent is how far back the records are searched for the cause of an alert.
	recent = 15 * time.Minute
	// causeBefore is how long before an alert its incident may have ended.
	causeBefore = 2 * time.Minute
	// mostRecent is how many records of each kind are read.
	mostRecent = 20_000
	// recordsTimeout bounds reading the records: alerts are sent also without them.
	recordsTimeout = 5 * time.Second
)

// relate adds the incident and the vacancy to newly firing alerts, and the present
// sentence of the incident to ending ones. Without records alerts have neither.
func (l *termWork) relate(ctx context.Context, now time.Time, rules []Rule, c *change) {
	if !slices.ContainsFunc(c.notify, func(n notification) bool { return n.alert.FiredAt.Equal(now) || !n.endedAt.IsZero() }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordsTimeout)
	defer cancel()
	changes, err := readChanges(ctx, l.backend, now)
	if err != nil {
		l.log.Warn("the incident of alerts is not known", "error", err)
	}
	relateTo(changes, now, rules, c)
}

// readChanges reads the records of the last minutes.
func readChanges(ctx context.Context, backend *postgres.Backend, now time.Time) (changes incident.Changes, err error) {
	query := history.Query{Since: now.Add(-recent), Limit: mostRecent}
	if changes.Terms, err = backend.History(ctx, query); err != nil {
		return incident.Changes{}, err
	}
	if changes.Nodes, err = backend.NodeHistory(ctx, query); err != nil {
		return incident.Changes{}, err
	}
	if changes.Outages, err = backend.Outages(ctx, query); err != nil {
		return incident.Changes{}, err
	}
	return changes, nil
}

// relateTo is relate with the records. It leaves out an incident no longer known at the
// end of its alert: its sentence would be of another time.
func relateTo(changes incident.Changes, now time.Time, rules []Rule, c *change) {
	incidents := incident.Group(changes)
	roleOf := map[string]string{}
	for _, r := range rules {
		roleOf[r.Name] = RoleOf(r)
	}
	vacant := vacancies(changes.Terms)
	related := func(a alert, ends bool) alert {
		role := a.Labels["role"]
		role = cmp.Or(role, roleOf[a.Rule])
		if !ends {
			a.VacantSince = vacant[role]
		}
		a.Incident = ""
		i := incidentOf(a, role, incidents)
		if ends { // a later incident is not that of the alert when it fired
			i = incidentWith(a.GroupKey, incidents)
		}
		if i != nil {
			a.Incident = storable(i.Sentence(time.UTC), maxText)
			if !ends {
				a.GroupKey = groupKey(i)
			}
		}
		return a
	}
	for i, a := range c.written {
		if a.State == Firing && a.FiredAt.Equal(now) {
			c.written[i] = related(a, false)
		}
	}
	for i, n := range c.notify {
		if !n.endedAt.IsZero() || n.alert.FiredAt.Equal(now) {
			c.notify[i].alert = related(n.alert, !n.endedAt.IsZero())
			c.notify[i].endedAt = endOf(n, cmp.Or(n.alert.Labels["role"], roleOf[n.alert.Rule]), changes.Terms)
		}
	}
}

// longestRound is how long before a vacancy is recorded its alert can begin, and how long
// after the vacancy the alert can end.
const longestRound = time.Minute

// endOf returns when an alert ended. After a vacancy it is the begin of the next leader's
// term: the round that saw the end has another time.
func endOf(n notification, role string, terms []history.Term) time.Time {
	if n.endedAt.IsZero() || n.alert.VacantSince.IsZero() || n.alert.VacantSince.Sub(n.alert.ActiveAt) > longestRound {
		return n.endedAt
	}
	end, ended := n.endedAt, n.alert.VacantSince
	for _, t := range slices.SortedFunc(slices.Values(terms), func(a, b history.Term) int { return cmp.Compare(a.Term, b.Term) }) {
		if t.Role != role || !t.Began.After(n.alert.VacantSince) {
			continue
		}
		if t.Began.Sub(ended) > time.Second || end.Equal(n.endedAt) { // not by a hand-over
			end = t.Began
		}
		ended = t.Ended
	}
	if end.Before(n.alert.FiredAt) || n.endedAt.Sub(end).Abs() > longestRound {
		return n.endedAt
	}
	return end
}

// vacancies returns since when each role without a leader has none.
func vacancies(terms []history.Term) map[string]time.Time {
	last := map[string]history.Term{}
	for _, t := range terms {
		if known, ok := last[t.Role]; !ok || t.Term > known.Term {
			last[t.Role] = t
		}
	}
	vacant := map[string]time.Time{}
	for role, t := range last {
		if !t.Ended.IsZero() {
			vacant[role] = t.Ended
		}
	}
	return vacant
}

// incidentOf returns the latest incident of the role or the node of an alert, if it has
// one.
func incidentOf(a alert, role string, incidents []incident.Incident) *incident.Incident {
	id, name := a.Labels["node"], a.Labels["node_name"]
	for i := range incidents {
		one := &incidents[i]
		if !one.Ended.IsZero() && one.Ended.Before(a.ActiveAt.Add(-causeBefore)) {
			continue
		}
		if role != "" && slices.ContainsFunc(one.Moves, func(m incident.Move) bool { return m.From.Role == role }) {
			return one
		}
		if slices.ContainsFunc(one.Nodes, func(n incident.Node) bool {
			return id != "" && n.ID.String() == id || name != "" && n.Name == name
		}) {
			return one
		}
	}
	return nil
}

// incidentWith returns the incident of a group of alerts, if it is still known.
func incidentWith(key string, incidents []incident.Incident) *incident.Incident {
	at := slices.IndexFunc(incidents, func(i incident.Incident) bool { return groupKey(&i) == key })
	if key == "" || at < 0 {
		return nil
	}
	return &incidents[at]
}

// groupKey is the same for the alerts of one incident.
func groupKey(i *incident.Incident) string {
	node := ""
	if len(i.Nodes) > 0 {
		node = i.Nodes[0].ID.String()
	}
	return fmt.Sprintf("%s %s %d", i.Kind, node, i.Began.UnixMilli())
}
