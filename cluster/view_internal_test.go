package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// A reading that stalled with the database must not make the view ignore
// notifications for a multiple of the stall.
func TestViewReadsSoonAfterAStall(t *testing.T) {
	const interval, stall = time.Second, time.Minute
	for name, result := range map[string]error{"answered late": nil, "failed": errors.New("the connection was reset")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				first, readings := true, make(chan time.Time, 100)
				ask := func(context.Context) ([]tenure.Member, error) {
					if first {
						first = false
						time.Sleep(stall) // in the bubble: no time passes outside
						return nil, result
					}
					readings <- time.Now()
					return nil, nil
				}
				wakeups := make(chan struct{}, 1)
				v := newView(ask, interval, clocks.System(), slog.New(slog.DiscardHandler))
				finished := make(chan struct{})
				go func() { // ends with the context
					defer close(finished)
					v.follow(ctx, wakeups)
				}()
				time.Sleep(stall)
				ended := time.Now()
				wakeups <- struct{}{}
				if waited := (<-readings).Sub(ended); waited > interval+viewPause {
					t.Errorf("the registry was read %v after a stall of %v; want it within the interval of %v", waited, stall, interval)
				}
				cancel()
				<-finished
			})
		})
	}
}
