package doorbell

import (
	"testing"
	"time"
)

func TestPauseGrowsWithTheTimeWithoutRows(t *testing.T) {
	const least = 2 * time.Millisecond
	for _, test := range []struct{ nothing, want time.Duration }{
		{0, least},
		{10 * time.Millisecond, 5 * time.Millisecond},
		{time.Second, 10 * time.Millisecond},
		{2 * time.Second, 25 * time.Millisecond},
		{10 * time.Second, 25 * time.Millisecond},
		{40 * time.Second, 100 * time.Millisecond},
		{time.Hour, time.Second},
	} {
		if got := Pause(test.nothing, least); got != test.want {
			t.Errorf("after %v without rows the pause is %v; want %v", test.nothing, got, test.want)
		}
	}
	if got := Pause(0, time.Minute); got != time.Minute {
		t.Errorf("the pause is %v; want at least the least", got)
	}
}
