package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/program/link"
)

// linksOn returns the links on something.
func (c Config) linksOn(on string, values map[string]string) []LinkAddress {
	values["cluster"] = c.Title
	return linksOn(c.Links, on, values)
}

func linksOn(links []Link, on string, values map[string]string) []LinkAddress {
	all := []LinkAddress{}
	for _, l := range links {
		if l.On != on {
			continue
		}
		if address, ok := l.Address(values); ok {
			all = append(all, address)
		}
	}
	return all
}

// roleLinks returns the links on a role. Their time is when it began to be led or vacant.
func (c Config) roleLinks(role roleRecord) []LinkAddress {
	at := role.Began
	if role.Ended != nil {
		at = *role.Ended
	}
	return c.linksOn(link.OnRole, map[string]string{"role": role.Name, "node": role.NodeName, "time": linkTime(at)})
}

// linkTime is a time in a link; empty if it is not known.
func linkTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// linkAlerts returns alerts with their links.
func (c Config) linkAlerts(alerts []Alert) []Alert {
	alerts = slices.Clone(alerts)
	for i, a := range alerts {
		alerts[i].Links = append(c.linksOn(link.OnAlert, a.linkValues()), a.Links...)
	}
	return alerts
}

// linkValues are the values in links on an alert. Their time is when it began to fire.
func (a Alert) linkValues() map[string]string {
	return map[string]string{"alert": a.Name, "role": cmp.Or(a.Labels["role"], a.Role), "node": a.Labels["node_name"], "time": linkTime(a.Since)}
}

// LinksOf returns the links for a message about an alert: the alert's links, and the
// links of its role and its node, with their names after the names of the links. There
// are at most 20.
func LinksOf(links []Link, cluster string, alert Alert) []LinkAddress {
	values := alert.linkValues()
	values["cluster"] = cluster
	all := linksOn(links, link.OnAlert, values)
	for _, on := range []string{link.OnRole, link.OnNode} {
		if values[on] == "" {
			continue
		}
		for _, l := range linksOn(links, on, values) {
			l.Name += " (" + values[on] + ")"
			all = append(all, l)
		}
	}
	return all[:min(len(all), link.Most)]
}
