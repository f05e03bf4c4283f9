package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/console"
)

// demoScreen redraws the demonstration on a terminal. It changes nothing else of the
// terminal, which stays usable however the program ends.
type demoScreen struct {
	out      *console.Output
	database string
	size     func() (width, height int, err error) // of the terminal
	height   int                                   // number of lines of the last picture
}

// recentFailovers is how many failovers the picture lists.
const recentFailovers = 8

func (v *demoScreen) elected(time.Time, *demoSlot, int64, *failover) error { return nil }

func (v *demoScreen) killed(time.Time, *demoSlot, int64) error { return nil }

func (v *demoScreen) draw(show *demoShow) error {
	lines := v.crop(v.picture(show, time.Now()))
	var text strings.Builder
	if v.height > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", v.height)
	}
	for _, line := range lines {
		text.WriteString(printable.Text(line) + "\x1b[K\n")
	}
	text.WriteString("\x1b[J")
	v.height = len(lines)
	return v.out.Draw(text.String())
}

// crop cuts a picture to the terminal, since lines beyond its width or height cannot be
// overwritten. A terminal of unknown size is large enough.
func (v *demoScreen) crop(lines []string) []string {
	width, height, err := v.size()
	if err != nil || width < 2 || height < 2 {
		return lines
	}
	lines = lines[:min(len(lines), height-1)]
	for i, line := range lines {
		runes := []rune(line) // each is one column wide
		lines[i] = string(runes[:min(len(runes), width-1)])
	}
	return lines
}

// picture returns the lines of the current state.
func (v *demoScreen) picture(show *demoShow, now time.Time) []string {
	lines := []string{
		fmt.Sprintf("Tenure: %d nodes on a private %s. Ctrl-C ends it.", Nodes, v.database),
		"",
		fmt.Sprintf("  %-8s  %-8s  %-8s  %s", "NODE", "PID", "STATE", "FOR"),
	}
	for _, slot := range show.slots {
		pid := "-"
		if slot.child != nil {
			pid = fmt.Sprint(slot.child.pid())
		}
		lived := max(0, now.Sub(slot.since)).Seconds()
		lines = append(lines, fmt.Sprintf("  %-8s  %-8s  %-8s  %.1f s", slot.name, pid, slot.state, lived))
	}
	prospect := "  No node leads."
	if show.leader != nil {
		prospect = fmt.Sprintf("  %s leads term %s and will be killed in %.1f s.",
			show.leader.name, shortTerm(show.term), max(0, show.next.Sub(now)).Seconds())
	}
	lines = append(lines, "", prospect, "", "  "+newSummary(show.failovers).text())
	for i := len(show.failovers) - 1; i >= max(0, len(show.failovers)-recentFailovers); i-- {
		f := show.failovers[i]
		lines = append(lines, fmt.Sprintf("  term %-7s  %s -> %s  %9s", shortTerm(f.term), f.from, f.to, milliseconds(f.took)))
	}
	return lines
}

// shortTerm shortens a term number for display: its last six digits after an ellipsis.
// Terms of one role begun within a quarter of an hour still differ. Numbers to compare,
// copy or parse are printed in full.
func shortTerm(number int64) string {
	const kept = 1_000_000
	if number < kept {
		return strconv.FormatInt(number, 10)
	}
	return fmt.Sprintf("…%06d", number%kept)
}
