package alertcommand

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

// maxDetails is how many series of an alert are shown.
const maxDetails = 5

// alertDetails returns lines about a pending or firing alert.
func alertDetails(s alerts.Status) []string {
	var lines []string
	line := func(format string, args ...any) {
		lines = append(lines, console.Flatten(s.Name+": "+fmt.Sprintf(format, args...)))
	}
	if s.Problem != "" {
		line("it cannot be evaluated: %s", s.Problem)
	}
	for i, a := range s.Alerts {
		if i == maxDetails {
			line("and %d more", len(s.Alerts)-i)
			break
		}
		since := a.FiredAt
		if a.State == alerts.Pending {
			since = a.ActiveAt
		}
		text := fmt.Sprintf("%s since %s with %s%s", a.State, console.ShortTime(since), strconv.FormatFloat(a.Value, 'g', -1, 64), labelsText(a.Labels))
		if summary := a.Annotations["summary"]; summary != "" {
			text += ": " + summary
		}
		line("%s", text)
		if a.Incident != "" {
			line("incident: %s", a.Incident)
		}
		if a.SilencedBy != "" {
			line("silenced by %s until %s", a.SilencedBy, console.ShortTime(a.SilencedUntil))
		}
		if a.AckedBy != "" {
			line("acknowledged by %s until %s", a.AckedBy, console.ShortTime(a.AckedUntil))
		}
	}
	if s.NotificationProblem != "" {
		line("notification failed: %s", s.NotificationProblem)
	}
	return lines
}

// labelsText formats the labels of a series as in PromQL, without the labels common to
// all alerts.
func labelsText(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name != "alertname" && name != "severity" {
			pairs = append(pairs, name+"="+strconv.Quote(labels[name]))
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return " {" + strings.Join(pairs, ", ") + "}"
}
