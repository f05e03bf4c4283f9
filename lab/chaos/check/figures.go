package check

import (
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

const (
	// longestAge is how old a figure may be while its processor is led: "At rest it records
	// every 15 s that none waits", and the statement may take 5 s.
	longestAge = 20 * time.Second
	// undisturbed is how long before a figure nothing may have happened to the server, so that
	// its age is judged.
	undisturbed = 20 * time.Second
	// fewEvents is how many events a figure may differ by: those of a batch that is applied
	// between two looks.
	fewEvents = 5
	// blur is how far apart a figure and the truth were looked at.
	blur = time.Second
)

// checkFigures compares what a person was shown with what was: the figure must have been
// true, but for a few events, within a second of the time of which it is said to be, and not be too old.
func checkFigures(h *record.History, v *Verdict) {
	for _, f := range h.Figures {
		age := time.Duration(f.Age)
		if disturbed(h, f.From-int64(age)-int64(undisturbed), f.To) {
			continue
		}
		if age > longestAge && age > longestAge+silenced(h, f) {
			v.violation(Figures, f.From, "%v: the backlog of the view is %v old", since(h, f.From), age.Round(time.Millisecond))
			continue
		}
		least, most, known := backlogAt(h, f.From-f.Age-int64(blur), f.To-f.Age+int64(blur))
		if known && !f.More && (f.Behind < least-fewEvents || f.Behind > most+fewEvents) {
			v.violation(Figures, f.From, "%v: the backlog of the view is said to be %d as of %v ago; it was %d to %d",
				since(h, f.From), f.Behind, age.Round(time.Millisecond), least, most)
		}
	}
}

// silenced is how much longer a figure may stay the same because of a fault of the node
// that led the view: it leads until its silence ends its term.
func silenced(h *record.History, f record.Figure) time.Duration {
	from := f.From - f.Age - int64(undisturbed)
	for _, g := range h.Figures {
		if g.From < from || g.From > f.From || g.Leader == "" {
			continue
		}
		for _, fault := range h.Faults {
			if fault.Node == number(g.Leader) && fault.From <= f.To && fault.To >= from && !harmless[fault.Kind] {
				return silence(h.Settings)
			}
		}
	}
	return 0
}

// disturbed reports whether the server could not answer in time, or had another clock.
func disturbed(h *record.History, from, to int64) bool {
	for _, f := range h.Faults {
		if f.Node == 0 && f.From <= to && f.To >= from && f.Failed == "" && !harmless[f.Kind] {
			return true
		}
	}
	return false
}

// harmless are the kinds of faults that must not make a figure old or wrong.
var harmless = map[string]bool{
	"log-unreadable": true, "view-pause": true, "view-rebuild": true, "poison": true, "schedule-pause": true,
	"schedule-trigger": true, "receiver-down": true, "receiver-slow": true, "step-down": true, "drain": true,
}

// backlogAt returns the least and the greatest backlog in a time. Between two looks it may
// have grown by the events that were appended, and then have been applied.
func backlogAt(h *record.History, from, to int64) (least, most int64, known bool) {
	for i, b := range h.Backlogs {
		next := h.Backlogs[min(i+1, len(h.Backlogs)-1)]
		if next.To < from || b.From > to {
			continue
		}
		if !known {
			least, most, known = b.Behind, b.Behind, true
		}
		grown := appended(h, b.From, next.To)
		least, most = min(least, b.Behind, max(0, next.Behind-grown)), max(most, b.Behind+grown)
	}
	return least, most, known
}

// appended counts the events that were appended in a time.
func appended(h *record.History, from, to int64) (n int64) {
	for _, a := range h.Appended {
		if from <= a.At && a.At <= to {
			n++
		}
	}
	return n
}
