package children

import (
	"context"
	"time"

	"github.com/exactly-one/tenure/internal/testkit"
)

// Interval is a stretch of time.
type Interval struct{ From, To time.Time }

// Common returns what two intervals share; it ends before it begins if that is
// nothing.
func (i Interval) Common(other Interval) Interval {
	return Interval{Later(i.From, other.From), Earlier(i.To, other.To)}
}

// Shared returns how long two intervals overlap; it is negative if they do not.
func (i Interval) Shared(other Interval) time.Duration { return i.Common(other).Length() }

// Length returns how long the interval lasts.
func (i Interval) Length() time.Duration { return i.To.Sub(i.From) }

// Overlaps returns what any two intervals of two lists share.
func Overlaps(one, other []Interval) []Interval {
	var all []Interval
	for _, a := range one {
		for _, b := range other {
			if both := a.Common(b); both.Length() > 0 {
				all = append(all, both)
			}
		}
	}
	return all
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier one of two times.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Until is [testkit.Until].
func Until(ctx context.Context, limit, pace time.Duration, check func() error) error {
	return testkit.Until(ctx, limit, pace, check)
}
