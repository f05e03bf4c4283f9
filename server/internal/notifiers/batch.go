package notifiers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exactly-one/tenure/internal/printable"
)

// Batch is the contents of one message: alerts, either all firing or all ended.
type Batch struct {
	Cluster  string // the name of the cluster, if it has one
	URL      string // the address of the dashboard, if it is known
	Incident string // a sentence on what happened, if that is known
	Alerts   []Alert
	At       time.Time // of the attempt; now by default
	Test     bool      // the title begins with TEST
}

// severities are from the worst to the least.
var severities = []string{"critical", "error", "warning", "info"}

// prepared returns the batch with its alerts in order: the worst first, and of each
// severity the oldest.
func (b Batch) prepared() Batch {
	if b.At.IsZero() {
		b.At = time.Now()
	}
	rank := func(a Alert) int {
		if i := slices.Index(severities, a.Severity); i >= 0 {
			return i
		}
		return len(severities)
	}
	b.Alerts = slices.SortedStableFunc(slices.Values(b.Alerts), func(a, b Alert) int {
		return cmp.Or(rank(a)-rank(b), a.began().Compare(b.began()), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return b
}

// The part of a message on the lock screen of a phone.
const (
	maxTitle       = 80
	maxClusterName = 24
)

// Title is the message in one line of at most 80 characters: severity, place, fault,
// duration, and beginning. If there is too little room, the time is left out first, and
// then the end of the summary.
func (b Batch) Title() string {
	b = b.prepared()
	first := b.Alerts[0]
	level := strings.ToUpper(first.Severity)
	if !first.Firing() {
		level = "OVER"
	}
	if b.Test {
		level = "TEST " + level
	}
	begin := level + " " + shortened(printable.Text(oneLine(cmp.Or(b.Cluster, "tenure"))), maxClusterName) + ": "
	more := ""
	if n := len(b.Alerts) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	what, ends := first.what(), first.timing(b.At)
	for _, end := range ends {
		if title := begin + what + more + end; utf8.RuneCountInString(title) <= maxTitle {
			return title
		}
	}
	end := more + ends[len(ends)-1]
	return begin + shortened(what, maxTitle-utf8.RuneCountInString(begin+end)) + end
}

// Link is the address of the page on alerts, or empty.
func (b Batch) Link() string {
	if b.URL == "" {
		return ""
	}
	return strings.TrimSuffix(b.URL, "/") + "/#/alerts"
}

// Text is the message in plain lines: the title, and then the body.
func (b Batch) Text() string { return b.Title() + "\n" + b.body() }

// body is the message without its title: the incident, the link, and each alert.
func (b Batch) body() string {
	b = b.prepared()
	var text strings.Builder
	for _, line := range b.introduction() {
		fmt.Fprintln(&text, line)
	}
	for i, a := range b.Alerts {
		if i > 0 || text.Len() > 0 {
			fmt.Fprintln(&text)
		}
		if len(b.Alerts) > 1 {
			fmt.Fprintln(&text, a.heading(b.At))
		}
		for _, line := range a.details(a.linkLines()...) {
			fmt.Fprintln(&text, "  "+printable.Text(line))
		}
	}
	return text.String()
}

// introduction is the lines between the title and the alerts.
func (b Batch) introduction() []string {
	var lines []string
	if b.Incident != "" {
		lines = append(lines, printable.Text(oneLine(b.Incident)))
	}
	if link := b.Link(); link != "" {
		lines = append(lines, link)
	}
	return lines
}

// what is the fault in one line.
func (a Alert) what() string {
	return printable.Text(oneLine(cmp.Or(a.Annotations["summary"], a.Annotations["description"], a.Name)))
}

// began is when the fault began: before the alert fired.
func (a Alert) began() time.Time {
	if !a.Since.IsZero() {
		return a.Since
	}
	return a.StartedAt
}

// timing returns how long the fault has lasted, or lasted, the most complete text first.
// A fault that has just begun has no length, for example if its alert fires immediately.
func (a Alert) timing(at time.Time) []string {
	lasted := at.Sub(a.began())
	if !a.Firing() {
		lasted = a.EndedAt.Sub(a.began())
	}
	switch brief := lasted < time.Second; {
	case brief && a.Firing():
		return []string{" (since " + timeText(a.began()) + ")", ""}
	case brief:
		return []string{""}
	case !a.Firing():
		return []string{" after " + spoken(lasted)}
	}
	length := " for " + spoken(lasted)
	return []string{length + " (since " + timeText(a.began()) + ")", length}
}

// heading is an alert of several in one line.
func (a Alert) heading(at time.Time) string { return a.what() + a.timing(at)[0] }

// spoken is a duration with a precision suited to its length.
func spoken(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}
