package main

import (
	"fmt"
	"time"
)

// moment is a flag that reads a time, or how long ago it was.
type moment struct {
	text string
	at   time.Time
	ago  time.Duration
}

// Set implements pflag.Value.
func (m *moment) Set(s string) error {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err == nil {
		*m = moment{text: s, at: at}
		return nil
	}
	ago, err := parseDuration(s)
	if err != nil || ago < 0 {
		return fmt.Errorf("a time is written like 2026-03-08T02:30:00Z, or how long ago it was, like 90m")
	}
	*m = moment{text: s, ago: ago}
	return nil
}

func (m *moment) String() string { return m.text }

// Type implements pflag.Value.
func (m *moment) Type() string { return "time" }

// before returns the time, or the zero time if none was given.
func (m *moment) before(now time.Time) time.Time {
	if m.text == "" || !m.at.IsZero() {
		return m.at
	}
	return now.Add(-m.ago)
}
