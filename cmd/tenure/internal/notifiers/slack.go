package notifiers

import (
	"cmp"
	"context"
	"strings"
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
	Title    string `json:"title"`
	Text     string `json:"text"`
	Time     int64  `json:"ts"`
}

// The most characters that Slack takes without cutting them itself.
const (
	maxSlackTitle = 300
	maxSlackText  = 3000
)

func (slack) batch() int { return 20 }

func (s slack) send(ctx context.Context, target string, alerts []Alert) error {
	message := slackMessage{Channel: cmp.Or(target, s.channel)}
	var titles []string
	for _, a := range alerts {
		title := slackEscaped(shortened(a.title(), maxSlackTitle))
		titles = append(titles, title)
		message.Attachments = append(message.Attachments, slackAttachment{
			Fallback: title, Color: slackColor(a), Title: title,
			Text: slackEscaped(shortened(strings.Join(a.details(), "\n"), maxSlackText)), Time: a.StartedAt.Unix(),
		})
	}
	message.Text = titles[0]
	if len(titles) > 1 {
		message.Text = strings.Join(titles, "\n")
	}
	return s.post(ctx, "", message, nil)
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

// slackEscaped is a text that Slack does not take for markup: neither for links
// nor for a call to everybody in the channel.
func slackEscaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
