package console

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// ColorMode is when the states in a text have colors.
type ColorMode string

// The modes.
const (
	ColorAuto   ColorMode = "auto" // on a terminal, unless NO_COLOR is set
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// Set implements pflag.Value.
func (m *ColorMode) Set(s string) error {
	switch ColorMode(s) {
	case ColorAuto, ColorAlways, ColorNever:
		*m = ColorMode(s)
		return nil
	default:
		return fmt.Errorf("it must be auto, always or never")
	}
}

func (m *ColorMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *ColorMode) Type() string { return "when" }

// Colors reports whether texts have colors.
func (o *Output) Colors() bool {
	switch o.Color {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	}
	file, ok := o.Writer.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// color is the parameter of a terminal's sequence for a color.
type color string

const (
	noColor color = ""
	red     color = "31"
	green   color = "32"
	yellow  color = "33"
)

// stateColumns are the headers of the columns with states.
var stateColumns = []string{"STATE", "STATUS"}

// stateColors are the states with a color.
var stateColors = map[string]color{
	"leads": green, "led": green, "active": green, "alive": green, "succeeded": green,
	"waits": yellow, "foreign": yellow, "joining": yellow, "draining": yellow, "drained": yellow, "suspended": yellow,
	"paused": yellow, "ahead": yellow, "overdue": yellow, "pending": yellow, "missed": yellow, "skipped": yellow,
	"vacant": red, "dead": red, "failing": red, "failed": red, "firing": red, "unled": red,
	"timed_out": red, "panicked": red, "abandoned": red,
}

// colorOf returns the color of a state, which a reservation can follow: "active, two
// roles".
func colorOf(state string) color {
	word, _, reserved := strings.Cut(state, ",")
	if c := stateColors[word]; c != green || !reserved {
		return c
	}
	return yellow
}

func colored(c color, text string) string {
	if c == noColor {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
