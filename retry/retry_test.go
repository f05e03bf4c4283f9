package retry_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/exactly-one/tenure/retry"
)

func delays(t *testing.T, strategy retry.Strategy, attempts int) []time.Duration {
	t.Helper()
	var all []time.Duration
	for attempt := 1; attempt <= attempts; attempt++ {
		delay, again := strategy.NextDelay(retry.Failure{Attempt: attempt})
		if !again {
			t.Fatalf("gave up at attempt %d", attempt)
		}
		all = append(all, delay)
	}
	return all
}

func seconds(values ...float64) []time.Duration {
	var all []time.Duration
	for _, value := range values {
		all = append(all, time.Duration(value*float64(time.Second)))
	}
	return all
}

func TestRetryDelaysGrowWithAttempts(t *testing.T) {
	t.Parallel()
	highest := func() float64 { return math.Nextafter(1, 0) }
	lowest := func() float64 { return 0 }
	for name, test := range map[string]struct {
		strategy retry.Strategy
		want     []time.Duration
	}{
		"exponential, by default": {retry.ExponentialBackoff{}, seconds(1, 2, 4, 8, 16, 30, 30)},
		"exponential": {
			retry.ExponentialBackoff{Base: time.Second / 2, Max: 5 * time.Second, Multiplier: 3}, seconds(0.5, 1.5, 4.5, 5, 5),
		},
		"exponential, base above max": {retry.ExponentialBackoff{Base: time.Minute, Max: time.Second}, seconds(1, 1)},
		"fixed, by default":           {retry.FixedInterval{}, seconds(5, 5, 5)},
		"fixed":                       {retry.FixedInterval{Interval: time.Second / 4}, seconds(0.25, 0.25)},
		"decorrelated, always low":    {&retry.DecorrelatedJitter{Random: lowest}, seconds(1, 1, 1)},
		"decorrelated, half way": {
			&retry.DecorrelatedJitter{Random: func() float64 { return 0.5 }}, seconds(2, 3.5, 5.75),
		},
		"decorrelated, base above max": {
			&retry.DecorrelatedJitter{Base: time.Minute, Max: time.Second, Random: highest}, seconds(1, 1, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := delays(t, test.strategy, len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestDecorrelatedJitterRestartsWithEachSeries(t *testing.T) {
	t.Parallel()
	jitter := &retry.DecorrelatedJitter{Random: func() float64 { return 0.5 }}
	first := delays(t, jitter, 4)
	if second := delays(t, jitter, 4); !slices.Equal(first, second) {
		t.Errorf("first %v, then %v", first, second)
	}
}

func TestDelaysGrowToTheLongestDuration(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]retry.Strategy{
		"exponential":  retry.ExponentialBackoff{Base: time.Hour, Max: math.MaxInt64},
		"decorrelated": &retry.DecorrelatedJitter{Base: time.Hour, Max: math.MaxInt64, Random: func() float64 { return 0.9 }},
	} {
		var last time.Duration
		for i, delay := range delays(t, strategy, 100) {
			if delay < last || delay <= 0 {
				t.Errorf("%s: delay %d is %v, after %v", name, i+1, delay, last)
			}
			last = delay
		}
	}
}

func TestRetryFuncReceivesAttempts(t *testing.T) {
	t.Parallel()
	seen := retry.Failure{Attempt: 3, Elapsed: time.Minute, LastError: errors.New("held")}
	strategy := retry.Func(func(attempts retry.Failure) (time.Duration, bool) {
		return attempts.Elapsed, attempts == seen
	})
	if delay, again := strategy.NextDelay(seen); delay != time.Minute || !again {
		t.Errorf("got %v, %v", delay, again)
	}
	if _, again := strategy.NextDelay(retry.Failure{}); again {
		t.Error("does not stop")
	}
}

func drawDuration(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, name))
}

func TestExponentialBackoffStaysInBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := retry.ExponentialBackoff{
			Base: drawDuration(t, "base"), Max: drawDuration(t, "max"), Multiplier: rapid.Float64Range(1, 10).Draw(t, "multiplier"),
		}
		jittered := plain
		jittered.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
		attempt := rapid.IntRange(1, 1_000_000).Draw(t, "attempt")

		full, again := plain.NextDelay(retry.Failure{Attempt: attempt})
		if want := math.Min(float64(plain.Base)*math.Pow(plain.Multiplier, float64(attempt-1)), float64(plain.Max)); !again ||
			math.Abs(float64(full)-want) > 1 {
			t.Fatalf("got %v, %v, want %v", full, again, time.Duration(want))
		}
		delay, again := jittered.NextDelay(retry.Failure{Attempt: attempt})
		least := time.Duration(float64(full) * (1 - jittered.Jitter))
		if !again || delay < least-1 || delay > full {
			t.Fatalf("got %v, %v, want between %v and %v", delay, again, least, full)
		}
	})
}

func TestJitterIsClampedToItsRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		backoff := retry.ExponentialBackoff{Jitter: rapid.Float64().Draw(t, "jitter")}
		if delay, again := backoff.NextDelay(retry.Failure{Attempt: 1}); !again || delay < 0 || delay > time.Second {
			t.Fatalf("got %v, %v", delay, again)
		}
	})
}

func TestDecorrelatedJitterStaysInBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jitter := &retry.DecorrelatedJitter{
			Base: drawDuration(t, "base"), Max: drawDuration(t, "max"),
			Random: func() float64 { return rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random") },
		}
		previous := jitter.Base
		attempts := rapid.IntRange(1, 50).Draw(t, "attempts")
		for attempt := 1; attempt <= attempts; attempt++ {
			delay, again := jitter.NextDelay(retry.Failure{Attempt: attempt})
			if !again || delay < min(jitter.Base, jitter.Max) || delay > min(jitter.Max, max(3*previous, jitter.Base)) {
				t.Fatalf("attempt %d: %v, %v after %v with base %v and max %v", attempt, delay, again, previous, jitter.Base, jitter.Max)
			}
			previous = delay
		}
	})
}
