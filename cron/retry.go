package cron

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/exactly-one/tenure/internal/usercode"
	"github.com/exactly-one/tenure/retry"
)

// A retry is another attempt of the same run, in the same row: the tick stays claimed
// once. The leader records the failed attempt in a fenced transaction. From then on the
// run waits until the strategy's delay has passed. So no goroutine waits, and a term can
// end at any time: the leader of a later term claims the attempt in its own fenced
// transaction, like any waiting run, and starts it. AtMostOnce holds: the attempt before a
// retry has returned and is recorded. Without a record of the attempt there is no retry;
// the policy decides.

// Retry marks the error of a job: if the schedule has Retries left, its run is tried
// again, with an Attempt higher by one. errors.Is and errors.As find err. Retry(nil) is
// nil.
func Retry(err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err}
}

// retryError is an error asking for a retry.
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
