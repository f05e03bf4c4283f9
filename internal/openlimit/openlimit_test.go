package openlimit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

func TestLimitGrowsWithTimeSinceFirstLateAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSeries(clocks.System())
		refused := errors.New("refused")
		for i, step := range []struct {
			want, takes time.Duration
			err         error
		}{
			{want: 10 * time.Second, takes: time.Hour, err: refused}, // not because of time
			{want: 10 * time.Second, takes: 8 * time.Second, err: ErrTimeout},
			{want: 24 * time.Second, takes: 12 * time.Second, err: ErrTimeout},
			{want: time.Minute, takes: time.Second, err: refused},
			{want: 63 * time.Second, takes: time.Hour, err: ErrTimeout},
			{want: 2 * time.Minute},
		} {
			attempt := s.Begin(Session)
			if attempt.Limit != step.want {
				t.Errorf("attempt %d: got a limit of %v, want %v", i+1, attempt.Limit, step.want)
			}
			time.Sleep(step.takes)
			attempt.Fail(step.err)
		}
		s.Forget()
		if got := s.Begin(Session).Limit; got != 10*time.Second {
			t.Errorf("after a session was opened: got a limit of %v, want 10s", got)
		}
	})
}
