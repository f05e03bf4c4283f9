package dashboard

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exactly-one/tenure/internal/printable"
)

// Link is a template of links to another site, which the pages of roles, nodes and alerts
// show: to logs, traces, graphs or a runbook.
type Link struct {
	On   string // role, node or alert
	Name string // the text of the link
	// Template is an address that begins with https:// or http://. After the host it may
	// contain {role}, {node}, {alert}, {cluster} and {time}, whose values are escaped.
	// The page shows no link whose value is unknown.
	Template string
}

// LinkAddress is a link as the page shows it.
type LinkAddress struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// What a [Link] can be on.
const (
	onRole  = "role"
	onNode  = "node"
	onAlert = "alert"
)

// linkValues are the placeholders that a template may contain, by what it is on.
var linkValues = map[string][]string{
	onRole:  {"role", "node", "cluster", "time"},
	onNode:  {"node", "cluster", "time"},
	onAlert: {"alert", "role", "node", "cluster", "time"},
}

// The bounds on links.
const (
	maxLinks        = 20 // of each kind of page
	maxLinkName     = 40 // characters
	maxLinkTemplate = 2000
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Check returns what is wrong with a link. The error matches tenure.ErrInvalidConfig.
func (l Link) Check() error {
	known, ok := linkValues[l.On]
	switch {
	case !ok:
		return invalid("a link is on %q; it must be on a role, a node or an alert", l.On)
	case l.Name == "" || utf8.RuneCountInString(l.Name) > maxLinkName || !printable.IsText(l.Name):
		return invalid("the name of a link must have 1 to %d printable characters", maxLinkName)
	case len(l.Template) > maxLinkTemplate:
		return invalid("the address has %d bytes; it must have at most %d", len(l.Template), maxLinkTemplate)
	}
	for _, found := range placeholder.FindAllString(l.Template, -1) {
		if !slices.Contains(known, strings.Trim(found, "{}")) {
			return invalid("%s is not known here; a link on a %s may contain {%s}", found, l.On, strings.Join(known, "}, {"))
		}
	}
	return checkAddress(l.Template)
}

// checkAddress checks the address of a link. A value must not change the host, so the
// address without values is checked.
func checkAddress(template string) error {
	bare, err := url.Parse(placeholder.ReplaceAllString(template, "x"))
	if err != nil || bare.Host == "" || bare.User != nil || bare.Scheme != "https" && bare.Scheme != "http" || !printable.IsText(template) {
		return invalid("the address must begin with https:// or http:// and a host, without a user")
	}
	host := strings.SplitN(template, "/", 4)[2]
	if end := strings.IndexAny(host, "?#"); end >= 0 {
		host = host[:end]
	}
	if strings.ContainsAny(host, `{}\`) || strings.ContainsAny(placeholder.ReplaceAllString(template, ""), `{}\ "<>`) {
		return invalid("the address may have placeholders only after the host, and no other braces, no quotes, spaces or backslashes")
	}
	return nil
}

// checkLinks checks links, and their number.
func checkLinks(links []Link) error {
	counts := map[string]int{}
	for _, l := range links {
		if err := l.Check(); err != nil {
			return err
		}
		if counts[l.On]++; counts[l.On] > maxLinks {
			return invalid("there are more than %d links on a %s", maxLinks, l.On)
		}
	}
	return nil
}

// address returns the address with values in place of its placeholders, or false if a
// value is missing or would be read as a part of the path.
func (l Link) address(values map[string]string) (LinkAddress, bool) {
	complete := true
	address := placeholder.ReplaceAllStringFunc(l.Template, func(found string) string {
		value := values[strings.Trim(found, "{}")]
		complete = complete && value != "" && value != "." && value != ".."
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	return LinkAddress{l.Name, address}, complete
}

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
		if address, ok := l.address(values); ok {
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
	return c.linksOn(onRole, map[string]string{"role": role.Name, "node": role.NodeName, "time": linkTime(at)})
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
		alerts[i].Links = append(c.linksOn(onAlert, a.linkValues()), a.Links...)
	}
	return alerts
}

// linkValues are the values in links on an alert. Their time is when it began to fire.
func (a Alert) linkValues() map[string]string {
	return map[string]string{"alert": a.Name, "role": cmp.Or(a.Labels["role"], a.Role), "node": a.Labels["node_name"], "time": linkTime(a.Since)}
}

// LinksOf returns the links for a message about an alert: those on the alert, and those on
// its role and its node, with their names after the names of the links.
// There are at most 20.
func LinksOf(links []Link, cluster string, alert Alert) []LinkAddress {
	values := alert.linkValues()
	values["cluster"] = cluster
	all := linksOn(links, onAlert, values)
	for _, on := range []string{onRole, onNode} {
		if values[on] == "" {
			continue
		}
		for _, l := range linksOn(links, on, values) {
			l.Name += " (" + values[on] + ")"
			all = append(all, l)
		}
	}
	return all[:min(len(all), maxLinks)]
}
