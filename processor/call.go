package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/usercode"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// A handler still running after the end of its context is reported after firstReport, then
// at intervals doubling up to maxReport.
const (
	firstReport = time.Second
	maxReport   = time.Minute
)

// panicError is the error of a handler after a panic, or after the end of its goroutine.
type panicError struct{ reason any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.reason) }

// call calls a handler with its time limit and converts a panic, or the end of its
// goroutine, to an error.
func (l *loop) call(ctx context.Context, fn func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout)
	defer cancel()
	running, returned := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	unwatch := context.AfterFunc(limited, func() {
		defer close(watched)
		l.watch(running, context.Cause(limited))
	})
	reason, stack := usercode.Call(func() {
		if err = fn(limited); err != nil {
			_ = err.Error() // it is code of the user too, and is called again to record the failure
		}
	})
	if reason != nil {
		l.log.Error("the handler panicked", "panic", reason, "stack", string(stack))
		err = &panicError{reason}
	}
	returned()
	if !unwatch() {
		<-watched
		l.stateKnown = false // it may have recorded that the handler did not return
	}
	return err
}

// recording returns the context in which the result of a call is recorded. It does not
// depend on the context of the step: a handler can ignore it and run longer.
func (l *loop) recording(term context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(term, l.trustWindow())
}

// watch reports a handler still running after the end of its context. The processor and
// the end of the term wait for the handler, because it occupies the goroutine of the loop.
func (l *loop) watch(running context.Context, cause error) {
	ended := time.Now()
	for pause := firstReport; ; pause = min(2*pause, maxReport) {
		wakeup.Sleep(running, pause)
		if running.Err() != nil {
			return
		}
		since := time.Since(ended).Round(time.Second)
		l.log.Error("the handler still runs after its context has ended", "cause", cause, "since", since)
		limited, cancel := context.WithTimeout(running, l.trustWindow())
		hangs := fmt.Errorf("the handler has ignored the end of its context (%w) for %v", cause, since)
		if err := l.recordStuck(limited, hangs, time.Since(ended)); err != nil && running.Err() == nil {
			l.log.Warn("recording that failed", "error", err)
		}
		cancel()
	}
}

// countPanic increments the processor's panic count if the failure was a panic.
func (l *loop) countPanic(ctx context.Context, tx pgx.Tx, failure error) error {
	var panicked *panicError
	if !errors.As(failure, &panicked) {
		return nil
	}
	_, err := tx.Exec(ctx, l.tables.SQL(countPanic), l.config.Name)
	return err
}
