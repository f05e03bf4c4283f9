package notifiers

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"
)

// webhook posts to any program.
type webhook struct {
	endpoint
	key secret
}

// webhookMessage is the body of a request.
type webhookMessage struct {
	Version  string         `json:"version"`
	Title    string         `json:"title"`
	Cluster  string         `json:"cluster"`
	Incident string         `json:"incident"`
	URL      string         `json:"url"` // of the page on alerts
	Alerts   []webhookAlert `json:"alerts"`
}

type webhookAlert struct {
	ID          string            `json:"id"`  // the same for all attempts to send this
	Key         string            `json:"key"` // the same for the beginning and the end
	Status      string            `json:"status"`
	Name        string            `json:"name"`
	Severity    string            `json:"severity"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Value       any               `json:"value"` // a number, or the text NaN, +Inf or -Inf
	Since       time.Time         `json:"since"` // when the fault began
	StartedAt   time.Time         `json:"started_at"`
	EndedAt     *time.Time        `json:"ended_at"` // null while it fires
	Links       []Link            `json:"links"`
}

func (webhook) batch() int { return 100 }

func (w webhook) send(ctx context.Context, _ string, b Batch) error {
	message := webhookMessage{Version: "1", Title: b.Title(), Cluster: b.Cluster, Incident: b.Incident, URL: b.Link()}
	for _, a := range b.Alerts {
		one := webhookAlert{
			ID: a.ID.String(), Key: a.Key(), Status: a.status(), Name: a.Name, Severity: a.Severity,
			Labels: a.Labels, Annotations: a.Annotations, Value: a.Value, Since: a.began().UTC(), StartedAt: a.StartedAt.UTC(),
			Links: append([]Link{}, a.Links...),
		}
		if math.IsNaN(a.Value) || math.IsInf(a.Value, 0) {
			one.Value = fmt.Sprintf("%+v", a.Value)
		}
		if !a.Firing() {
			ended := a.EndedAt.UTC()
			one.EndedAt = &ended
		}
		message.Alerts = append(message.Alerts, one)
	}
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	header := http.Header{}
	key, err := w.key.read()
	if err != nil {
		return err
	}
	if err := sign(header, idOf(b.Alerts), time.Now(), body, key); err != nil {
		return err
	}
	return w.postBytes(ctx, "", body, header, key)
}
