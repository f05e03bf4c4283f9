package demo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// demoScreen redraws the demonstration on a terminal.
type demoScreen struct {
	screen   *console.Screen
	database string
}

// recentFailovers is how many failovers the picture lists.
const recentFailovers = 8

func (v *demoScreen) elected(time.Time, *demoSlot, int64, *failover) error { return nil }

func (v *demoScreen) killed(time.Time, *demoSlot, int64) error { return nil }

func (v *demoScreen) draw(show *demoShow) error {
	return v.screen.Draw(func(page *console.Page) { v.fill(page, show, time.Now()) })
}

// fill shows the current state.
func (v *demoScreen) fill(page *console.Page, show *demoShow, now time.Time) {
	line := func(format string, args ...any) { page.Line(fmt.Sprintf(format, args...)) }
	line("Tenure: %d nodes on a private %s. Ctrl-C ends it.", Nodes, v.database)
	line("")
	line("  %-8s  %-8s  %-8s  %s", "NODE", "PID", "STATE", "FOR")
	for _, slot := range show.slots {
		pid := "-"
		if slot.child != nil {
			pid = fmt.Sprint(slot.child.pid())
		}
		line("  %-8s  %-8s  %-8s  %.1f s", slot.name, pid, slot.state, max(0, now.Sub(slot.since)).Seconds())
	}
	prospect := "No node leads."
	if show.leader != nil {
		prospect = fmt.Sprintf("%s leads term %s and will be killed in %.1f s.",
			show.leader.name, shortTerm(show.term), max(0, show.next.Sub(now)).Seconds())
	}
	line("")
	line("  %s", prospect)
	line("")
	line("  %s", newSummary(show.failovers).text())
	for i := len(show.failovers) - 1; i >= max(0, len(show.failovers)-recentFailovers); i-- {
		f := show.failovers[i]
		line("  term %-7s  %s -> %s  %9s", shortTerm(f.term), f.from, f.to, milliseconds(f.took))
	}
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
