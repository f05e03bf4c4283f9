package cron

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A job that still runs after its context has ended is reported, less and less
// often, until it returns. A job that returns in time is not.
func TestJobIgnoringItsContextIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after time.Duration // the end of the context until the return
		want  int
	}{
		"returns in time": {reportInterval - time.Second, 0},
		"is late":         {reportInterval + time.Second, 1},
		"is very late":    {8 * reportInterval, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var text strings.Builder
				cause := errors.New("the lights went out")
				ctx, cancel := context.WithCancelCause(t.Context())
				returned, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					watch(ctx, returned, slog.New(slog.NewTextHandler(&text, nil)))
				}()
				<-time.After(time.Hour) // work
				cancel(cause)
				<-time.After(test.after)
				close(returned)
				<-done
				if n := strings.Count(text.String(), "still runs after its context has ended"); n != test.want {
					t.Errorf("reported %d times; want %d", n, test.want)
				}
				if test.want > 0 && !strings.Contains(text.String(), cause.Error()) {
					t.Errorf("the report does not say why: %s", text.String())
				}
			})
		})
	}
}
