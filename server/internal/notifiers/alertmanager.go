package notifiers

import (
	"context"
	"maps"
	"strings"
	"time"
)

// alertmanagerRefresh is how often firing alerts are sent to Alertmanager: it keeps
// alerts in memory, and treats an unrepeated alert as resolved.
const alertmanagerRefresh = time.Minute

// alertmanager hands alerts to Prometheus's Alertmanager. The same alert can be
// sent any number of times.
type alertmanager struct{ endpoint }

type alertmanagerAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Generator   string            `json:"generatorURL,omitempty"`
}

func (alertmanager) batch() int { return 500 }

func (m alertmanager) send(ctx context.Context, _ string, b Batch) error {
	message := make([]alertmanagerAlert, len(b.Alerts))
	for i, a := range b.Alerts {
		ends := a.EndedAt
		if a.Firing() {
			ends = time.Now().Add(4 * alertmanagerRefresh)
		}
		if ends.Before(a.StartedAt) { // by the database's clock, which may be ahead; it would be refused
			ends = a.StartedAt.Add(4 * alertmanagerRefresh)
		}
		message[i] = alertmanagerAlert{a.Labels, b.titled(a), a.StartedAt.UTC(), ends.UTC(), b.Link()}
	}
	return m.post(ctx, "/api/v2/alerts", message, nil)
}

// titled returns the annotations of an alert and, unless its rule has them, a title and the
// links for the templates of Alertmanager: the labels alone do not name the cluster.
func (b Batch) titled(a Alert) map[string]string {
	annotations := map[string]string{"title": Batch{Cluster: b.Cluster, At: b.At, Test: b.Test, Alerts: []Alert{a}}.Title()}
	if len(a.Links) > 0 {
		annotations["links"] = strings.Join(a.linkLines(), "\n")
	}
	maps.Copy(annotations, a.Annotations)
	return annotations
}
