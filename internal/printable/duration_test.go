package printable

import (
	"testing"
	"time"
)

func TestDurationHasThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 µs", 87 * time.Microsecond: "87 µs", 5 * time.Millisecond: "5 ms", 29_140 * time.Microsecond: "29.1 ms",
		178 * time.Millisecond: "178 ms", 24_614 * time.Millisecond: "24.6 s", 65_400 * time.Millisecond: "1 min 5 s", 2 * time.Hour: "2 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestAgeHasTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 41_900 * time.Millisecond: "41 s", 123 * time.Second: "2 min 3 s", 2 * time.Minute: "2 min",
		90 * time.Minute: "1 h 30 min", time.Hour + 5*time.Second: "1 h", 26 * time.Hour: "1 d 2 h",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
