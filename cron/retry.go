package cron

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/exactly-one/tenure/internal/usercode"
	"github.com/exactly-one/tenure/retry"
)

// A retry is another attempt of the same run, in the same row: the tick stays
// claimed once. The leader records the failed attempt in a fenced transaction,
// which makes the run wait until the strategy's delay has passed. So no goroutine
// waits, a term can end at any time, and the leader of a later term starts the
// attempt, which it claims in its own fenced transaction like any waiting run.
// AtMostOnce holds: the attempt before a retry has returned and is recorded. An
// attempt that its leader could not record has no retry; the policy decides.

// Retry marks the error of a job: if the schedule has Retries left, its run is
// tried again, with an Attempt that is one higher. errors.Is and errors.As find
// err. Retry(nil) is nil.
func Retry(err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err}
}

// retryError is an error that asks for a retry.
type retryError struct{ err error }

func (e *retryError) Error() string { return e.err.Error() }

func (e *retryError) Unwrap() error { return e.err }

// retryAfter returns the delay before a failed run is tried again, or false if it
// is not. elapsed is the time since the run was claimed.
func (s Schedule) retryAfter(attempt int, elapsed time.Duration, err error, log *slog.Logger) (delay time.Duration, again bool) {
	var asks *retryError
	if attempt > s.Retries || !errors.As(err, &asks) {
		return 0, false
	}
	strategy := s.Backoff
	if strategy == nil {
		strategy = retry.ExponentialBackoff{}
	}
	failure := retry.Failure{Attempt: attempt, Elapsed: elapsed, LastError: asks.err}
	reason, _ := usercode.Call(func() { delay, again = strategy.NextDelay(failure) })
	if reason != nil {
		log.Error("the backoff of a schedule panicked: its run is not tried again", "panic", fmt.Sprint(reason))
		return 0, false
	}
	return max(delay, 0), again
}
