package flagvalue

import (
	"fmt"
	"time"
)

// Moment is a flag for a time or an age.
type Moment struct {
	text string
	at   time.Time
	ago  time.Duration
}

// timeLayouts are the accepted formats. A time without a zone is in the local
// zone, like the program's output.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// Set implements pflag.Value.
func (m *Moment) Set(s string) error {
	for _, layout := range timeLayouts {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			*m = Moment{text: s, at: at}
			return nil
		}
	}
	ago, err := parseDuration(s)
	if err != nil || ago < 0 {
		return fmt.Errorf("a time is written like 2026-03-08T02:30:00Z, or 2026-03-08 02:30 in the zone of this machine, or an age such as 90m")
	}
	*m = Moment{text: s, ago: ago}
	return nil
}

func (m *Moment) String() string { return m.text }

// Type implements pflag.Value.
func (m *Moment) Type() string { return "time" }

// Before returns the time, or the zero time if the flag is not set.
func (m *Moment) Before(now time.Time) time.Time {
	if m.text == "" || !m.at.IsZero() {
		return m.at
	}
	return now.Add(-m.ago)
}
