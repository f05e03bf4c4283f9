package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// An event that failed under a clock that was ahead is tried again when the clock is right:
// the next leader does not wait for the false time.
func TestRetryOfFalseClockIsDue(t *testing.T) {
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	w := newWorldOn(t, server)
	w.append(1)
	clock.Set(t, 365*24*time.Hour)
	var attempts atomic.Int64
	var works atomic.Bool
	config := processor.Config{
		Name: "sent", Retry: retry.FixedInterval{Interval: time.Minute},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			attempts.Add(1)
			if !works.Load() {
				return 0, errors.New("closed for today")
			}
			return len(batch), nil
		},
	}
	first := w.Node("first", tenure.Config{})
	w.group(first, config)
	w.Await("a failed attempt", func() bool {
		return attempts.Load() == 1 && postgrestest.Value[bool](w.Installation, "SELECT next_attempt_at IS NOT NULL FROM {processors}")
	})
	postgrestest.Close(t, first)
	works.Store(true)
	clock.Set(t, 0)
	w.group(w.Node("second", tenure.Config{}), config)
	w.Await("the event, without the pause of the false clock", func() bool { return attempts.Load() == 2 })
}
