package notifiers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// slack posts to an incoming webhook. The webhook belongs to a channel; only
// webhooks of the old kind can post to another.
type slack struct {
	endpoint
	channel string
}

type slackMessage struct {
	Channel     string            `json:"channel,omitempty"`
	Text        string            `json:"text"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Fallback string `json:"fallback"`
	Color    string `json:"color"`
	Title    string `json:"title,omitempty"` // of one alert of several
	Text     string `json:"text"`
	Time     int64  `json:"ts"`
}

// The maximum characters Slack takes without a cut.
const (
	maxSlackTitle = 300
	maxSlackText  = 3000
)

func (slack) batch() int { return 20 }

func (s slack) send(ctx context.Context, target string, b Batch) error {
	message := slackMessage{Channel: cmp.Or(target, s.channel)}
	for _, a := range b.Alerts {
		links := slackLinks(a.Links)
		details := shortened(strings.Join(a.details(), "\n"), maxSlackText-utf8.RuneCountInString(links))
		attachment := slackAttachment{
			Fallback: slackEscaped(shortened(a.Name+a.labelText(), maxSlackTitle)), Color: slackColor(a),
			Text: links + slackEscaped(details), Time: a.StartedAt.Unix(),
		}
		if len(b.Alerts) > 1 {
			attachment.Title = slackEscaped(shortened(a.heading(b.At), maxSlackTitle))
		}
		message.Attachments = append(message.Attachments, attachment)
	}
	message.Text = slackEscaped(strings.Join(append([]string{b.Title()}, b.introduction()...), "\n"))
	return s.post(ctx, "", message, nil)
}

// slackLinks is a line with the links, as many as take half of the text.
func slackLinks(links []Link) string {
	var shown []string
	room := maxSlackText / 2
	for _, l := range links {
		// A bar ends the address, and is not escaped in the name.
		address, name := slackEscaped(strings.ReplaceAll(l.URL, "|", "%7C")), slackEscaped(strings.ReplaceAll(l.name(), "|", "/"))
		link := "<" + address + "|" + name + ">"
		if room -= utf8.RuneCountInString(link) + len(slackBetween); room < 0 {
			break
		}
		shown = append(shown, link)
	}
	if len(shown) == 0 {
		return ""
	}
	return strings.Join(shown, slackBetween) + "\n"
}

// slackBetween is between two links.
const slackBetween = " · "

// labelText lists the labels of an alert beyond those of its rule's other alerts, after a
// space.
func (a Alert) labelText() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		if name != "alertname" && name != "severity" {
			pairs = append(pairs, name+"="+oneLine(a.Labels[name]))
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return " (" + strings.Join(pairs, ", ") + ")"
}

func slackColor(a Alert) string {
	switch {
	case !a.Firing():
		return "good"
	case a.Severity == "critical" || a.Severity == "error":
		return "danger"
	default:
		return "warning"
	}
}

// slackEscaped is a text without markup for Slack: neither links nor a call to everybody
// in the channel.
func slackEscaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
