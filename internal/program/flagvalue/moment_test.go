package flagvalue

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// A time can also be given in the form that the program prints.
func TestMomentAcceptsPrintedTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-03-08T02:30:00Z":      time.Date(2026, 3, 8, 2, 30, 0, 0, time.UTC),
		"2026-03-08T02:30:00+01:00": time.Date(2026, 3, 8, 1, 30, 0, 0, time.UTC),
		"2026-03-08 02:30:01.250":   time.Date(2026, 3, 8, 2, 30, 1, 250_000_000, time.Local),
		"2026-03-08 02:30":          time.Date(2026, 3, 8, 2, 30, 0, 0, time.Local),
		"2026-03-08":                time.Date(2026, 3, 8, 0, 0, 0, 0, time.Local),
		console.ShortTime(now):      now,
		"90m":                       now.Add(-90 * time.Minute),
		"0":                         now,
		"1.5":                       now.Add(-1500 * time.Millisecond),
	} {
		var m Moment
		if err := m.Set(text); err != nil || !m.Before(now).Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, m.Before(now), err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-5m", "2026-13-01", "2026-03-08 25:00", "08.03.2026"} {
		if err := new(Moment).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
