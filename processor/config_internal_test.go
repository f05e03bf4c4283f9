package processor

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/retry"
)

func TestZeroConfigGetsDocumentedTimes(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if c.PollInterval != time.Second {
		t.Errorf("the poll interval is %v, want 1s", c.PollInterval)
	}
	if c.MaxPollInterval != 5*time.Second {
		t.Errorf("the longest poll interval is %v, want 5s", c.MaxPollInterval)
	}
	if c.HandleTimeout != 30*time.Second {
		t.Errorf("the handle timeout is %v, want 30s", c.HandleTimeout)
	}
	if c.MaxAttempts != 10 {
		t.Errorf("an event has %d attempts, want 10", c.MaxAttempts)
	}
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 20: time.Minute} {
		wantPause(t, "attempt", c.Retry, attempt, want)
	}
}

func TestDatabaseErrorsAreRetriedAfterDocumentedPauses(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{1: 50 * time.Millisecond, 20: 30 * time.Second} {
		wantPause(t, "error", faultBackoff, attempt, want)
	}
}

// wantPause checks a pause, which is up to a half shorter at random.
func wantPause(t *testing.T, what string, strategy retry.Strategy, attempt int, want time.Duration) {
	t.Helper()
	for range 20 {
		if got, again := strategy.NextDelay(retry.Failure{Attempt: attempt}); !again || got > want || got < want/2 {
			t.Errorf("the pause after %s %d is %v (%v); want about %v", what, attempt, got, again, want)
			return
		}
	}
}
