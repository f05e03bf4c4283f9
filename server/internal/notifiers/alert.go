package notifiers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Alert is the subject of one notification: an alert began to fire, or it ended.
type Alert struct {
	ID          uuid.UUID // the same for all attempts to send this
	Name        string    // of the rule
	Severity    string    // info, warning, error or critical
	Labels      map[string]string
	Annotations map[string]string
	Value       float64
	Since       time.Time // since when the role is vacant or the condition holds; zero if unknown
	StartedAt   time.Time // when it began to fire
	EndedAt     time.Time // zero while it fires
	Role        string    // the subject, if known
	Links       []Link    // to logs, graphs and the like
}

// Link is a link to another site.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// maxLinkName is how many characters a message shows of the name of a link.
const maxLinkName = 80

// name is the name of a link in one line.
func (l Link) name() string { return shortened(oneLine(l.Name), maxLinkName) }

// linkLines are the links, each in one line.
func (a Alert) linkLines() []string {
	var lines []string
	for _, l := range a.Links {
		lines = append(lines, l.name()+": "+l.URL)
	}
	return lines
}

// Firing reports whether the alert still fires.
func (a Alert) Firing() bool { return a.EndedAt.IsZero() }

// Key is the same for the beginning and the end of one alert, and for nothing
// else.
func (a Alert) Key() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %d", a.Name, a.StartedAt.UnixMicro())
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		fmt.Fprintf(hash, " %q=%q", name, a.Labels[name])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// status is firing or resolved.
func (a Alert) status() string {
	if a.Firing() {
		return "firing"
	}
	return "resolved"
}

// timeText is a time in a message: all people who receive it have the same text.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// details are further lines: the description, the runbook, links, and then the name of
// the rule, the value, times and labels.
func (a Alert) details(links ...string) []string {
	var lines []string
	summary, description := a.Annotations["summary"], a.Annotations["description"]
	if summary != "" && len(summary) > maxTitle/2 {
		lines = append(lines, summary) // the title may have a part of it
	}
	if description != "" && (summary != "" || len(description) > maxTitle/2) {
		lines = append(lines, description)
	}
	if runbook := a.Annotations["runbook"]; runbook != "" {
		lines = append(lines, "runbook: "+runbook)
	}
	lines = append(lines, links...)
	lines = append(lines, "alert: "+a.Name, "severity: "+a.Severity, "value: "+strconv.FormatFloat(a.Value, 'g', -1, 64),
		"since: "+timeText(a.began()))
	if !a.Firing() {
		lines = append(lines, "until: "+timeText(a.EndedAt))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" && name != "severity" {
			lines = append(lines, name+": "+a.Labels[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" && name != "description" && name != "runbook" {
			lines = append(lines, name+": "+a.Annotations[name])
		}
	}
	return lines
}

// oneLine is a text without line breaks and other control characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }), " ")
}

// shortened is a text of at most so many characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}
	return text
}

// idOf is the same for the same alerts.
func idOf(alerts []Alert) uuid.UUID {
	if len(alerts) == 1 {
		return alerts[0].ID
	}
	var ids []byte
	for _, a := range alerts {
		ids = append(ids, a.ID[:]...)
	}
	return uuid.NewSHA1(alerts[0].ID, ids)
}
