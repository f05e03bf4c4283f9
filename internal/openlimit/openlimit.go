// Package openlimit bounds attempts to open a session or a connection.
//
// Many programs that connect at the same time, as after a restart of the server, make
// it slow for all of them. If each gave up after the same time, the server would spend its
// time on attempts that come to nothing, and none would ever succeed. So the limit grows
// with the time since the first attempt that took too long.
package openlimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Session is how long one attempt to open a session may take.
var Session = Rule{Least: 10 * time.Second, Most: 2 * time.Minute, Part: 2}

// ErrTimeout is the cause of a context that ends because an attempt took too long.
var ErrTimeout = fmt.Errorf("opening took too long: %w", context.DeadlineExceeded)

// Explain adds ErrTimeout to the error of an attempt if that was the cause.
func Explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// Rule is how a limit grows.
type Rule struct {
	Least, Most time.Duration
	Part        int // the limit is the time since the first late attempt began, divided by this
}

// Series is a series of attempts. The zero value has none. It is not safe for concurrent
// use.
type Series struct {
	late  bool
	since time.Duration // when the first late attempt began
}

// Note notes how an attempt ended that began at that time of a monotonic clock. It took too
// long if err matches context.DeadlineExceeded.
func (s *Series) Note(begun time.Duration, err error) {
	if !s.late && errors.Is(err, context.DeadlineExceeded) {
		s.late, s.since = true, begun
	}
}

// Limit returns how long an attempt may take that begins now.
func (s *Series) Limit(now time.Duration, r Rule) time.Duration {
	if !s.late {
		return r.Least
	}
	return min(max(r.Least, (now-s.since)/time.Duration(r.Part)), r.Most)
}
