package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// interruption is the cause of a context that a signal ended. It matches
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

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM, which
// requests a graceful end, with an [interruption] as the cause. A second signal
// terminates the program as if the first had not been caught.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { // exits with a signal or ctx; nothing waits for it
		select {
		case received := <-signals:
			signal.Stop(signals) // before the context ends
			cancel(interruption{received})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}
