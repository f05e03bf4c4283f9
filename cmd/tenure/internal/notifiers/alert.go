package notifiers

import (
	"cmp"
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
	StartedAt   time.Time
	EndedAt     time.Time // zero while it fires
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

// title is the alert on one line.
func (a Alert) title() string {
	return fmt.Sprintf("[%s] %s", strings.ToUpper(a.status()), a.summary())
}

// summary is what the alert is about.
func (a Alert) summary() string {
	if summary := cmp.Or(a.Annotations["summary"], a.Annotations["description"]); summary != "" {
		return a.Name + ": " + oneLine(summary)
	}
	return a.Name
}

// details are all lines that say more: the description, the value and the labels.
func (a Alert) details() []string {
	var lines []string
	if text := a.Annotations["description"]; text != "" {
		lines = append(lines, text)
	}
	lines = append(lines,
		"severity: "+a.Severity,
		"value: "+strconv.FormatFloat(a.Value, 'g', -1, 64),
		"since: "+a.StartedAt.UTC().Format(time.RFC3339))
	if !a.Firing() {
		lines = append(lines, "until: "+a.EndedAt.UTC().Format(time.RFC3339))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" && name != "severity" {
			lines = append(lines, name+": "+a.Labels[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		if name != "summary" && name != "description" {
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
		return string(runes[:most-1]) + "…"
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
