package alerts

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/prometheus/promql"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// Case is the subject of a preview of a notification.
type Case struct {
	Role, NodeName string    // the labels of the alert, if it has them
	Since          time.Time // since when the role is vacant
	Incident       string    // in a sentence
}

// SampleCase returns a made-up case at a time: the crash of the leader of a rule's role.
func SampleCase(rule Rule, now time.Time) Case {
	role := "scheduler"
	if roles := rolesIn(rule.Condition); len(roles) > 0 {
		role = roles[0]
	}
	node, began := uuid.UUID{1}, now.Add(-41*time.Second)
	groups := incident.Group(incident.Changes{Terms: []history.Term{{
		Role: role, Term: 1, Node: node, NodeName: "api-1", Began: began.Add(-time.Hour), Ended: began, Reason: history.EndCrashed, PrecedingSilence: -1,
	}}})
	return Case{role, "api-1", began, groups[0].Sentence(time.UTC)}
}

// CurrentCase returns the latest incident of the last 15 minutes; ok is false if there is
// none.
func CurrentCase(ctx context.Context, backend *postgres.Backend, now time.Time) (found Case, ok bool, err error) {
	changes, err := readChanges(ctx, backend, now)
	if err != nil {
		return Case{}, false, err
	}
	all := incident.Group(changes)
	if len(all) == 0 {
		return Case{}, false, nil
	}
	found = Case{Since: all[0].Began, Incident: all[0].Sentence(time.UTC)}
	if len(all[0].Moves) > 0 {
		found.Role, found.NodeName = all[0].Moves[0].From.Role, all[0].Moves[0].From.NodeName
	} else if len(all[0].Nodes) > 0 {
		found.NodeName = all[0].Nodes[0].Name
	}
	return found, true, nil
}

// Preview returns the alert of a rule in a case, at a time, with its templates expanded.
// Templates with queries of metrics find none.
func Preview(ctx context.Context, rule Rule, of Case, now time.Time) notifiers.Alert {
	series := map[string]string{}
	for name, value := range map[string]string{"role": of.Role, "node_name": of.NodeName} {
		if value != "" {
			series[name] = storable(value, maxText)
		}
	}
	none := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	labels := maps.Clone(series)
	maps.Copy(labels, expand(ctx, rule.Labels, series, 0, now, none))
	labels["alertname"], labels["severity"], labels["test"] = rule.Name, rule.Severity, "true"
	return notifiers.Alert{
		ID: uuid.New(), Name: rule.Name, Severity: rule.Severity, Labels: labels,
		Annotations: expand(ctx, rule.Templates(), series, 0, now, none), Since: of.Since, StartedAt: now,
	}
}
