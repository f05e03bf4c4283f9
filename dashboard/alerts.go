package dashboard

import (
	"context"
	"errors"
	"maps"
	"time"
)

// ErrNoAlert is the error of [Config.HandleAlert] if no alert that is meant fires.
var ErrNoAlert = errors.New("no such alert fires")

// AlertRequest is what a user asks for alerts: to silence or to acknowledge them.
type AlertRequest struct {
	Acknowledge bool              // or else silence
	Name        string            // of the rule
	Labels      map[string]string // that the alerts have; of a silence empty for all alerts of the rule
	For         time.Duration     // how long
	Comment     string
	By          string // the user
}

// The bounds of the time in a request of the page, in seconds.
const (
	leastAlertSeconds = 60
	mostAlertSeconds  = 365 * 24 * 3600
)

// actOnAlert silences or acknowledges alerts.
func (d *Dashboard) actOnAlert(ctx context.Context, body actionBody, by string) error {
	if d.config.HandleAlert == nil {
		return errUnknown
	}
	if body.Seconds < leastAlertSeconds || body.Seconds > mostAlertSeconds {
		return invalid("the time is %d s", body.Seconds)
	}
	return d.config.HandleAlert(ctx, AlertRequest{
		Acknowledge: body.Action == acknowledgeAlert, Name: body.Name, Labels: maps.Clone(body.Labels),
		For: time.Duration(body.Seconds) * time.Second, Comment: body.Comment, By: by,
	})
}
