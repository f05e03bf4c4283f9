package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// How much of a name, and of an error, a sentence has room for.
const (
	mostRunes      = 40
	mostErrorRunes = 120
)

// The marks around text with its own direction (Unicode Annex 9, section 2.4).
const (
	isolate = "\u2068"
	ended   = "\u2069"
)

// quoted makes a name part of a sentence: it is on one line, not too long, and does not
// change the text direction of the rest.
func quoted(name string) string { return quotedUpTo(name, mostRunes) }

// quotedUpTo is quoted with another limit.
func quotedUpTo(name string, most int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		switch {
		case isControl(r):
			return ' '
		case isDirection(r):
			return -1
		default:
			return r
		}
	}, name))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return isolate + string(runes) + ended
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

// isDirection reports characters with an effect on the direction of the following text.
func isDirection(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

// The marks around a time in a sentence. The page shows the time in the visitor's
// zone. No name contains them, since quoted removes control characters.
const (
	timeBegins = "\x01"
	timeEnds   = "\x02"
)

// moment makes a time part of a sentence.
func moment(at time.Time) string {
	return timeBegins + at.UTC().Format(time.RFC3339Nano) + timeEnds
}

// mostNamed is how many things a sentence names.
const mostNamed = 3

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// listed names some things in a sentence.
func listed(names []string) string {
	slices.Sort(names)
	var parts []string
	for _, name := range names[:min(len(names), mostNamed)] {
		parts = append(parts, quoted(name))
	}
	if more := len(names) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
