package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/exactly-one/tenure/internal/usercode"
)

// The bounds of the time in a request of the page, in seconds.
const (
	leastAlertSeconds = 60
	mostAlertSeconds  = 365 * 24 * 3600
)

var errAlertsLate = errors.New("an earlier call of the function Alerts has not returned")

// readAlerts calls Config.Alerts in a separate goroutine, one call at a time: a hanging
// call must not stop the reads of everything else. The result of a late call is old, and
// is not used.
func (w *watcher) readAlerts(ctx context.Context) ([]Alert, error) {
	if w.config.Alerts == nil {
		return nil, nil
	}
	if w.late != nil {
		select {
		case <-w.late:
			w.late = nil
		default:
			return nil, errAlertsLate
		}
	}
	returned := make(chan alertsResult, 1)
	w.calls.Go(func() {
		var r alertsResult
		if reason, _ := usercode.Call(func() { r.alerts, r.err = w.config.Alerts(ctx) }); reason != nil {
			r = alertsResult{err: fmt.Errorf("the function Alerts panicked: %v", reason)}
		}
		returned <- r
	})
	select {
	case r := <-returned:
		return r.alerts, r.err
	case <-ctx.Done():
		w.late = returned
		return nil, context.Cause(ctx)
	}
}

// actOnAlert silences or acknowledges alerts.
func (d *Dashboard) actOnAlert(ctx context.Context, body actionBody, by string) error {
	if d.config.HandleAlert == nil {
		return errUnknown
	}
	unsilence := body.Action == unsilenceAlert
	if unsilence {
		body.Seconds = 0
	} else if body.Seconds < leastAlertSeconds || body.Seconds > mostAlertSeconds {
		return invalid("the time is %d s", body.Seconds)
	}
	return d.config.HandleAlert(ctx, AlertRequest{
		Acknowledge: body.Action == acknowledgeAlert, Unsilence: unsilence, Name: body.Name, Labels: maps.Clone(body.Labels),
		For: time.Duration(body.Seconds) * time.Second, Comment: body.Comment, By: by,
	})
}
