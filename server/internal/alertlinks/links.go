// Package alertlinks makes the links in messages of the links in the configuration file.
package alertlinks

import (
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/server/dashboard"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// Of returns a function that returns the links of an alert of a cluster.
func Of(f *config.File, cluster string) func(notifiers.Alert) []notifiers.Link {
	links := f.Links()
	return func(a notifiers.Alert) []notifiers.Link {
		var all []notifiers.Link
		for _, l := range dashboard.LinksOf(links, cluster, dashboard.Alert{Name: a.Name, Labels: a.Labels, Role: a.Role, Since: a.StartedAt}) {
			all = append(all, notifiers.Link{Name: l.Name, URL: l.URL})
		}
		return all
	}
}
