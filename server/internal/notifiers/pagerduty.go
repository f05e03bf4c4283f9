package notifiers

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"strconv"
	"time"
)

// pagerDutyEvents is where PagerDuty's Events API v2 takes events.
const pagerDutyEvents = "https://events.pagerduty.com/v2/enqueue"

// pagerDuty opens an incident when an alert begins and resolves it when the alert ends.
// Both events have the same key, as has an event sent again.
type pagerDuty struct {
	endpoint
	key secret
}

type pagerDutyEvent struct {
	RoutingKey string            `json:"routing_key"`
	Action     string            `json:"event_action"`
	DedupKey   string            `json:"dedup_key"`
	Client     string            `json:"client,omitempty"`
	ClientURL  string            `json:"client_url,omitempty"`
	Links      []pagerDutyLink   `json:"links,omitempty"`
	Payload    *pagerDutyPayload `json:"payload,omitempty"`
}

type pagerDutyLink struct {
	Address string `json:"href"`
	Text    string `json:"text"`
}

type pagerDutyPayload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp string            `json:"timestamp"`
	Component string            `json:"component,omitempty"`
	Class     string            `json:"class"`
	Details   map[string]string `json:"custom_details"`
}

func (pagerDuty) batch() int { return 1 }

func (p pagerDuty) send(ctx context.Context, _ string, b Batch) error {
	key, err := p.key.read()
	if err != nil {
		return err
	}
	a := b.Alerts[0]
	event := pagerDutyEvent{RoutingKey: key, Action: "resolve", DedupKey: a.Key()}
	if a.Firing() {
		event.Action, event.Client, event.ClientURL = "trigger", "Tenure", b.Link()
		if runbook := a.Annotations["runbook"]; isWebAddress(runbook) {
			event.Links = append(event.Links, pagerDutyLink{runbook, "Runbook"})
		}
		for _, l := range a.Links {
			event.Links = append(event.Links, pagerDutyLink{l.URL, l.name()})
		}
		event.Payload = &pagerDutyPayload{
			Summary: b.Title(), Source: cmp.Or(b.Cluster, "tenure"), Severity: a.Severity,
			Timestamp: a.began().UTC().Format(time.RFC3339Nano), Component: a.Labels["role"], Class: a.Name,
			Details: map[string]string{"value": strconv.FormatFloat(a.Value, 'g', -1, 64)},
		}
		maps.Copy(event.Payload.Details, a.Annotations)
		maps.Copy(event.Payload.Details, a.Labels)
		if b.Incident != "" {
			event.Payload.Details["incident"] = b.Incident
		}
	}
	return p.post(ctx, "", event, nil, key)
}

// isWebAddress reports whether a text can be a link.
func isWebAddress(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Host != "" && (address.Scheme == "https" || address.Scheme == "http")
}
