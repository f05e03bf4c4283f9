package console

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/printable"
)

// ShortDuration formats a duration with its two largest units, at most to the second.
func ShortDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Truncate(time.Second); {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}

// SpellDuration formats for how long something has lasted, for a sentence: "2 min 3 s".
func SpellDuration(d time.Duration) string {
	if d < time.Second {
		return "less than 1 s"
	}
	return printable.Age(d)
}

// AsOf is the line about the age of what is shown, and about why it is not newer.
func AsOf(at time.Time, failure error) string {
	line := "as of " + at.Format(time.RFC3339)
	if failure != nil {
		line += fmt.Sprintf(" (%s ago): the database does not answer: %s", SpellDuration(time.Since(at)), OneLine(failure))
	}
	return line
}
