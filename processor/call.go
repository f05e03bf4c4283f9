package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
)

// A handler that does not return after its context has ended is reported after
// the first time, then after double that, and so on up to the second.
const (
	patience     = time.Second
	mostPatience = time.Minute
)

// panicError is what a panic of a handler becomes.
type panicError struct{ reason any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.reason) }

// call calls a handler within its time and makes an error of a panic.
func (l *loop) call(ctx context.Context, fn func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout)
	defer cancel()
	running, returned := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	unwatch := context.AfterFunc(limited, func() {
		defer close(watched)
		l.watch(running, context.Cause(limited))
	})
	defer func() {
		if reason := recover(); reason != nil {
			l.log.Error("the handler panicked", "panic", reason, "stack", string(debug.Stack()))
			err = &panicError{reason}
		}
		returned()
		if !unwatch() {
			<-watched
		}
	}()
	return fn(limited)
}

// watch reports a handler that goes on although its context has ended, as long
// as it is running: the processor, and the end of the term, wait for it. The
// goroutine of the loop is in the handler meanwhile.
func (l *loop) watch(running context.Context, cause error) {
	ended := time.Now()
	for pause := patience; ; pause = min(2*pause, mostPatience) {
		sleep(running, pause)
		if running.Err() != nil {
			return
		}
		since := time.Since(ended).Round(time.Second)
		l.log.Error("the handler ignores the end of its context", "cause", cause, "since", since)
		limited, cancel := context.WithTimeout(running, l.window())
		text := fmt.Sprintf("the handler has ignored the end of its context (%v) for %v", cause, since)
		_, err := l.database.Exec(limited, l.tables.SQL(reportError), l.config.Name, l.term.Number(), text, l.term.Role().Name())
		if err := errors.Join(err, l.measure(limited)); err != nil && running.Err() == nil {
			l.log.Warn("showing that failed", "error", err)
		}
		cancel()
	}
}

// countPanic counts a failure in the processor's row if it was a panic.
func (l *loop) countPanic(ctx context.Context, tx pgx.Tx, failure error) error {
	var panicked *panicError
	if !errors.As(failure, &panicked) {
		return nil
	}
	_, err := tx.Exec(ctx, l.tables.SQL(countPanic), l.config.Name)
	return err
}
