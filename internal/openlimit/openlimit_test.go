package openlimit

import (
	"errors"
	"testing"
	"time"
)

func TestLimitGrowsWithTimeSinceFirstLateAttempt(t *testing.T) {
	t.Parallel()
	rule := Rule{Least: 10 * time.Second, Most: time.Minute, Part: 2}
	var s Series
	for _, step := range []struct {
		now, want time.Duration
		late      bool
	}{
		{now: time.Hour, want: 10 * time.Second}, // earlier attempts failed, but not because of time
		{now: time.Hour + 5*time.Second, want: 10 * time.Second, late: true},
		{now: time.Hour + 15*time.Second, want: 10 * time.Second, late: true},
		{now: time.Hour + 35*time.Second, want: 15 * time.Second, late: true},
		{now: time.Hour + 65*time.Second, want: 30 * time.Second},
		{now: 2 * time.Hour, want: time.Minute},
	} {
		if got := s.Limit(step.now, rule); got != step.want {
			t.Errorf("at %v: got %v, want %v", step.now, got, step.want)
		}
		err := errors.New("refused")
		if step.late {
			err = ErrTimeout
		}
		s.Note(step.now, err)
	}
}
