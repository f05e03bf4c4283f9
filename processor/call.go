package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a handler may take to return after its context has ended
// before that is reported, again and again.
const patience = time.Second

// panicError is what a panic of a handler becomes.
type panicError struct{ reason any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.reason) }

// call calls a handler within its time and makes an error of a panic.
func (l *loop) call(ctx context.Context, fn func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout)
	defer cancel()
	returned, watched := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(limited, func() {
		defer close(watched)
		watch(limited, returned, l.log)
	})
	defer func() {
		if reason := recover(); reason != nil {
			l.log.Error("the handler panicked", "panic", reason, "stack", string(debug.Stack()))
			err = &panicError{reason}
		}
		close(returned)
		if !unwatch() {
			<-watched
		}
	}()
	return fn(limited)
}

// watch reports a handler that goes on although its context has ended: the
// processor, and the end of the term, wait for it.
func watch(ctx context.Context, returned <-chan struct{}, log *slog.Logger) {
	ended := time.Now()
	for pause := patience; ; pause *= 2 {
		timer := time.NewTimer(pause)
		select {
		case <-returned:
			timer.Stop()
			return
		case <-timer.C:
			log.Error("the handler ignores the end of its context", "cause", context.Cause(ctx), "since", time.Since(ended))
		}
	}
}

// countPanic counts a failure in the processor's row if it was a panic.
func (l *loop) countPanic(ctx context.Context, tx pgx.Tx, failure error) error {
	var panicked *panicError
	if !errors.As(failure, &panicked) {
		return nil
	}
	_, err := tx.Exec(ctx, l.backend.SQL(countPanic), l.config.Name)
	return err
}
