package console

import (
	"testing"
	"time"
)

func TestSpellDurationHasSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than 1 s", 41 * time.Second: "41 s", 123 * time.Second: "2 min 3 s", 26 * time.Hour: "1 d 2 h", 2 * time.Minute: "2 min",
	} {
		if got := SpellDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestShortDurationUsesTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59*time.Second + 999*time.Millisecond: "59s", 62 * time.Second: "1m2s",
		time.Hour + 59*time.Second: "1h0m", 76 * time.Hour: "3d4h",
	} {
		if got := ShortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
