// Package openlimit bounds attempts to open a session or a connection.
//
// If many programs connect at the same time, as after a restart of the server, the server
// is slow for all of them. If each gave up after the same time, the server would spend its
// time on useless attempts, and none would ever succeed. So the limit grows with the time
// since the first attempt over the limit.
package openlimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// How long one attempt may take. A session needs two connections, one after the other, and
// time for its statements. If another address can be tried, a hanging server must not
// delay the next round of attempts for long.
var (
	Session             = Rule{Least: 10 * time.Second, Most: 2 * time.Minute, Growth: 3}
	Connection          = Rule{Least: 5 * time.Second, Most: time.Minute, Growth: 1}
	ConnectionOfSeveral = Rule{Least: 3 * time.Second, Most: 15 * time.Second, Growth: 1}
)

// ErrTimeout is the cause of a context's end after an attempt took too long.
var ErrTimeout = fmt.Errorf("opening took too long: %w", context.DeadlineExceeded)

// Explain adds ErrTimeout to the error of an attempt if it was the cause.
func Explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// Rule is how a limit grows.
type Rule struct {
	Least, Most time.Duration
	Growth      float64 // the limit as a part of the time since the first late attempt began
}

// Series is the attempts since a session was last opened. It is safe for concurrent use.
type Series struct {
	clock clocks.Clock

	mu    sync.Mutex
	late  bool          // guarded by mu: an attempt took too long
	since time.Duration // guarded by mu: when the first such attempt began
}

// NewSeries returns a series without attempts.
func NewSeries(clock clocks.Clock) *Series { return &Series{clock: clock} }

// Attempt is one attempt of a series.
type Attempt struct {
	Limit time.Duration // how long it may take

	series *Series
	rule   Rule
	begun  time.Duration
}

// Begin begins an attempt.
func (s *Series) Begin(r Rule) Attempt {
	now := s.clock.Now().Mono
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Attempt{Limit: r.Least, series: s, rule: r, begun: now}
	if s.late {
		grown := time.Duration(r.Growth * float64(now-s.since))
		a.Limit = min(max(r.Least, grown), r.Most)
	}
	return a
}

// Fail ends an attempt. It took too long if err matches context.DeadlineExceeded.
func (a Attempt) Fail(err error) {
	s := a.series
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late && errors.Is(err, context.DeadlineExceeded) {
		s.late, s.since = true, a.begun
	}
}

// Quick reports whether the attempt has not taken longer than the least limit.
func (a Attempt) Quick() bool {
	return a.series.clock.Now().Mono-a.begun <= a.rule.Least
}

// Forget begins the series again: limits are the least ones.
func (s *Series) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = false
}
