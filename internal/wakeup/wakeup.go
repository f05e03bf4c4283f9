// Package wakeup serves goroutines waiting for a time or for a notification.
package wakeup

import (
	"context"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// Send wakes the receiver of c. c must have a buffer of one. It never blocks: if a wake-up
// is in the buffer already, the receiver needs no other.
func Send(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Closed reports whether c is closed. Nothing may be sent on it.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Sleep waits for d or until ctx ends. It reports whether ctx has not ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	Await(ctx, d, nil)
	return ctx.Err() == nil
}

// Await waits for d, until ctx ends, or for a value from c or its end. It reports the last
// two.
func Await(ctx context.Context, d time.Duration, c <-chan struct{}) (woken bool) {
	return await(ctx, time.After(d), c)
}

// AwaitOn is Await by a clock.
func AwaitOn(ctx context.Context, clock clocks.Clock, d time.Duration, c <-chan struct{}) (woken bool) {
	passed := make(chan time.Time)
	defer clock.AfterFunc(d, func() { close(passed) })()
	return await(ctx, passed, c)
}

func await(ctx context.Context, passed <-chan time.Time, c <-chan struct{}) (woken bool) {
	select {
	case <-c:
		return true
	case <-passed:
	case <-ctx.Done():
	}
	return false
}

// Listen calls listen until ctx ends. Whenever listen returns before, Listen passes the
// error to failed and pauses.
func Listen(
	ctx context.Context, clock clocks.Clock, pause time.Duration,
	listen func(ctx context.Context, wake func()) error, wake func(), failed func(error),
) {
	for ctx.Err() == nil {
		if err := listen(ctx, wake); ctx.Err() == nil {
			failed(err)
		}
		AwaitOn(ctx, clock, pause, nil)
	}
}
