// Package link makes links to other sites of templates.
package link

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
)

// Template is a template of links to another site, for the pages of roles, nodes and
// alerts: to logs, traces, graphs or a runbook.
type Template struct {
	On   string // role, node or alert
	Name string // the text of the link
	// Template is an address beginning with https:// or http://. After the host it may
	// contain {role}, {node}, {alert}, {cluster} and {time}. Their values are escaped. The
	// page omits a link with an unknown value.
	Template string
}

// Address is a link as the page shows it.
type Address struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// The subjects of a [Template].
const (
	OnRole  = "role"
	OnNode  = "node"
	OnAlert = "alert"
)

// linkValues are the allowed placeholders of a template, by its subject.
var linkValues = map[string][]string{
	OnRole:  {"role", "node", "cluster", "time"},
	OnNode:  {"node", "cluster", "time"},
	OnAlert: {"alert", "role", "node", "cluster", "time"},
}

// The bounds on links.
const (
	maxLinkName     = 40 // characters
	maxLinkTemplate = 2000
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Check returns the fault of a link. The error matches tenure.ErrInvalidConfig.
func (l Template) Check() error {
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

// Address returns the address with values in place of its placeholders, or false if a
// value is missing or would be read as a part of the path.
func (l Template) Address(values map[string]string) (Address, bool) {
	complete := true
	address := placeholder.ReplaceAllStringFunc(l.Template, func(found string) string {
		value := values[strings.Trim(found, "{}")]
		complete = complete && value != "" && value != "." && value != ".."
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	return Address{l.Name, address}, complete
}

// Most is how many links a page or a message has at most.
const Most = 20

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
