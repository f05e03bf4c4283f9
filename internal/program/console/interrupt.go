package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// interruption is the cause of a context ended by a signal. It matches
// [context.Canceled].
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return "signal: " + i.signal.String() }

// Is makes an interruption match context.Canceled.
func (i interruption) Is(target error) bool { return target == context.Canceled }

// InterruptedBy returns the signal that ended a context, or nil.
func InterruptedBy(ctx context.Context) os.Signal {
	var cause interruption
	if errors.As(context.Cause(ctx), &cause) {
		return cause.signal
	}
	return nil
}

// repetition is how long after the first signal another one counts as the same. A parent such
// as consul lock sends a signal twice, and at a terminal the parent and the child each get it.
const repetition = 250 * time.Millisecond

// UntilSignal returns a context. It ends at the first SIGINT or SIGTERM, a request for a
// graceful end, with an [interruption] as the cause. A second signal terminates the
// program as if the first had not been caught, unless it is a [repetition].
func UntilSignal() (context.Context, context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return untilSignal(signals, func() { signal.Stop(signals) })
}

// untilSignal is UntilSignal for arriving signals, until stop is called.
func untilSignal(signals <-chan os.Signal, stop func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { // exits soon after a signal, or with ctx; nothing waits for it
		defer stop()
		select {
		case received := <-signals:
			cancel(interruption{received})
			time.Sleep(repetition)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
