package notifiers

import (
	"context"
	"strconv"
	"time"
)

// pagerDutyEvents is where PagerDuty's Events API v2 takes events.
const pagerDutyEvents = "https://events.pagerduty.com/v2/enqueue"

// pagerDuty opens an incident where an alert begins and resolves it where it
// ends; both have the same key, as has an event that is sent again.
type pagerDuty struct {
	endpoint
	key secret
}

type pagerDutyEvent struct {
	RoutingKey string            `json:"routing_key"`
	Action     string            `json:"event_action"`
	DedupKey   string            `json:"dedup_key"`
	Client     string            `json:"client,omitempty"`
	Payload    *pagerDutyPayload `json:"payload,omitempty"`
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

const maxPagerDutySummary = 1024

func (pagerDuty) batch() int { return 1 }

func (p pagerDuty) send(ctx context.Context, _ string, alerts []Alert) error {
	key, err := p.key.read()
	if err != nil {
		return err
	}
	a := alerts[0]
	event := pagerDutyEvent{RoutingKey: key, Action: "resolve", DedupKey: a.Key()}
	if a.Firing() {
		event.Action, event.Client = "trigger", "Tenure"
		event.Payload = &pagerDutyPayload{
			Summary: shortened(a.summary(), maxPagerDutySummary), Source: "tenure", Severity: a.Severity,
			Timestamp: a.StartedAt.UTC().Format(time.RFC3339Nano), Component: a.Labels["role"], Class: a.Name,
			Details: map[string]string{"value": strconv.FormatFloat(a.Value, 'g', -1, 64)},
		}
		for name, text := range a.Annotations {
			event.Payload.Details[name] = text
		}
		for name, text := range a.Labels {
			event.Payload.Details[name] = text
		}
	}
	return p.post(ctx, "", event, nil, key)
}
