package processor

import (
	"errors"
	"time"
)

// What a handler's error can say about who is to blame. Faults of the database,
// such as a serialization failure or a lost connection, count for nothing by
// themselves. Any other error counts as an attempt that failed, and Poison decides
// after MaxAttempts of them.
var (
	// ErrPoison in the error of a handler: the event can never be handled, so
	// that Poison decides at once. If it came with a batch, the events of the
	// batch are handled one at a time first, to find the one.
	ErrPoison = errors.New("the event cannot be handled")
	// ErrUnavailable in the error of a handler: something that it works with is
	// out of order, and no event is to blame. Attempts go on until that has
	// passed, with the pauses of Retry, and do not count as MaxAttempts.
	ErrUnavailable = errors.New("not available at present")
)

// RetryAfterError is an error of a handler that says how long to leave alone what
// it works with. It matches [ErrUnavailable].
type RetryAfterError struct {
	Delay time.Duration // at least; that of Retry if it is longer
	Err   error         // what happened
}

func (e *RetryAfterError) Error() string {
	return e.Err.Error() + "; asked to wait for " + e.Delay.String()
}

func (e *RetryAfterError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// pauseAfter is how long to wait after a failure, at least.
func pauseAfter(failure error) time.Duration {
	var asked *RetryAfterError
	if errors.As(failure, &asked) {
		return asked.Delay
	}
	return 0
}

// blame counts an attempt that failed, and reports whether that of a single
// event, or one in which it could not be found, was the last.
func (l *loop) blame(events int, failure error) (last bool) {
	if errors.Is(failure, ErrUnavailable) {
		return false
	}
	l.state.blamed++
	return l.state.blamed >= l.config.MaxAttempts || events == 1 && errors.Is(failure, ErrPoison)
}
