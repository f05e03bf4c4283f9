package console

import (
	"testing"
	"time"
)

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59*time.Second + 999*time.Millisecond: "59s", 62 * time.Second: "1m2s",
		time.Hour + 59*time.Second: "1h0m", 76 * time.Hour: "3d4h",
	} {
		if got := ShortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
