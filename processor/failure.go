package processor

import (
	"errors"
	"time"
)

// Errors for a handler to name the cause of a failure. Errors of the database, such as a
// serialization failure or a lost connection, do not count as attempts. Any other error
// counts as a failed attempt, and after MaxAttempts of them, Poison decides.
var (
	// ErrPoison in a handler's error means that the event can never be handled, so Poison
	// decides immediately. If it was returned for a batch, the events are first handled
	// one at a time to find the poison event.
	ErrPoison = errors.New("the event cannot be handled")
	// ErrUnavailable in a handler's error means that a dependency of the handler is not
	// available and no event is to blame. Retries continue with the pauses of Retry and do
	// not count toward MaxAttempts.
	ErrUnavailable = errors.New("temporarily unavailable")
)

// RetryAfterError is a handler's error with the minimum time until the next
// attempt. It matches [ErrUnavailable].
type RetryAfterError struct {
	Delay time.Duration // minimum pause; Retry applies if it is longer
	Err   error         // the cause; may be nil
}

func (e *RetryAfterError) Error() string {
	asked := "asked to wait for " + e.Delay.String()
	if e.Err == nil {
		return asked
	}
	return e.Err.Error() + "; " + asked
}

func (e *RetryAfterError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// minPause returns the minimum pause after a failure.
func minPause(failure error) time.Duration {
	var asked *RetryAfterError
	if errors.As(failure, &asked) {
		return asked.Delay
	}
	return 0
}

// countAttempt counts a failed attempt. It reports whether it was the last one allowed for
// a single event, or for a batch without a known failing event.
func (l *loop) countAttempt(events int, failure error) (last bool) {
	if errors.Is(failure, ErrUnavailable) {
		return false
	}
	l.state.countedAttempts++
	return l.state.countedAttempts >= l.config.MaxAttempts || events == 1 && errors.Is(failure, ErrPoison)
}
