package check

import (
	"math"
	"slices"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// Policies of schedules, as package cron names them.
const (
	atMostOnce  = "at_most_once"
	atLeastOnce = "at_least_once"
)

// TickInterval is the time between two ticks of every schedule of a run.
const TickInterval = time.Second

// checkTicks checks what docs/howto/schedule-jobs.md promises: each tick is claimed once, and none
// is left out; a run is started at most once, or until it has ended.
func checkTicks(h *record.History, v *Verdict) {
	starts := map[int64]int{}
	for _, tick := range h.Ticks {
		starts[tick.Run]++
	}
	bySchedule := map[string][]record.Run{}
	for _, run := range h.Runs {
		bySchedule[run.Schedule] = append(bySchedule[run.Schedule], run)
	}
	for schedule, policy := range h.Schedules {
		runs := bySchedule[schedule]
		if len(runs) == 0 {
			v.violation(Ticks, 0, "%s never ticked", schedule)
			continue
		}
		slices.SortFunc(runs, func(a, b record.Run) int { return int(a.ScheduledFor - b.ScheduledFor) })
		ticked := slices.DeleteFunc(slices.Clone(runs), func(r record.Run) bool { return r.Manual })
		checkEveryTick(v, schedule, ticked, slices.DeleteFunc(slices.Clone(h.Pauses), func(p record.Pause) bool { return p.Schedule != schedule }))
		for _, run := range runs {
			checkRun(v, policy, run, starts[run.ID])
		}
	}
}

func checkEveryTick(v *Verdict, schedule string, runs []record.Run, pauses []record.Pause) {
	if len(runs) == 0 {
		v.violation(Ticks, 0, "%s only ran when it was requested", schedule)
		return
	}
	for i, run := range runs[1:] {
		paused := int64(0)
		for _, p := range pauses {
			paused += max(0, min(p.To, run.ScheduledFor)-max(p.From, runs[i].ScheduledFor))
		}
		mayLack := int64(math.Ceil(float64(paused) / float64(TickInterval)))
		// A row of several missed ticks stands at its last one.
		ticks := int64(math.Round(float64(run.ScheduledFor-runs[i].ScheduledFor) / float64(TickInterval)))
		switch want := max(run.Ticks, 1); {
		case ticks < want:
			v.violation(Ticks, 0, "%s: the tick at %v was claimed twice", schedule, time.Unix(0, run.ScheduledFor).UTC())
		case ticks > want+mayLack:
			v.violation(Ticks, 0, "%s: %d ticks before %v were never claimed", schedule, ticks-want, time.Unix(0, run.ScheduledFor).UTC())
		}
	}
}

func checkRun(v *Verdict, policy string, run record.Run, starts int) {
	at := time.Unix(0, run.ScheduledFor).UTC().Format(time.TimeOnly)
	complain := func(text string) {
		v.violation(Ticks, 0, "%s: the run of %s, which is %s, %s (started %d times, committed %d times)",
			run.Schedule, at, run.State, text, starts, run.Effects)
	}
	switch run.State {
	case "waiting", "running":
		complain("has not ended")
	case "succeeded":
		if starts == 0 || run.Effects == 0 {
			complain("left no trace")
		}
	case "abandoned":
		if policy == atLeastOnce {
			complain("must be repeated instead")
		}
	case "failed", "timed_out":
	case "missed", "skipped":
		if starts > 0 {
			complain("was started")
		}
	default:
		complain("must not be in this state")
	}
	if policy == atMostOnce && (starts > 1 || run.Effects > 1) {
		complain("happened more than once")
	}
}

// longestRest is how long a schedule that ticks each second may start no run although the
// server was not disturbed: a vacancy of its role, and a look at the schedules.
const longestRest = 45 * time.Second

// checkPace checks that schedules tick, by the clock of this machine.
func checkPace(h *record.History, v *Verdict) {
	starts := map[string][]int64{}
	for _, tick := range h.Ticks {
		starts[tick.Schedule] = append(starts[tick.Schedule], tick.At)
	}
	for schedule := range h.Schedules {
		all := append([]int64{h.Start}, starts[schedule]...)
		all = append(all, h.End)
		slices.Sort(all)
		for i, at := range all[1:] {
			for from := all[i]; from+int64(longestRest) < at; from += int64(time.Second) {
				if !disturbed(h, from, from+int64(longestRest)) && !mayPause(h, from, from+int64(longestRest)) {
					v.violation(Ticks, from, "%s started no run for %v from %v, although nothing kept it", schedule, longestRest, since(h, from))
					break
				}
			}
		}
	}
}

// mayPause reports whether an operator may have paused a schedule.
func mayPause(h *record.History, from, to int64) bool {
	return slices.ContainsFunc(h.Faults, func(f record.Fault) bool { return f.Kind == "schedule-pause" && f.From < to && f.To > from })
}

// checkEvents checks that every acknowledged event is in the log, and that the view
// applied each event of the log exactly once.
func checkEvents(h *record.History, v *Verdict) {
	there := map[string]bool{}
	var sum int64
	for _, e := range h.Events {
		there[e.ID] = true
		sum += e.Amount
		if e.Letters != 1 {
			v.violation(Events, 0, "the processor with dead letters handled event %s %d times", e.ID, e.Letters)
		}
		if e.Applied != 1 {
			v.violation(Events, 0, "the view applied event %s %d times", e.ID, e.Applied)
		}
	}
	if sum != h.ViewSum {
		v.violation(Events, 0, "the view's sum is %d; the sum of the log is %d", h.ViewSum, sum)
	}
	for _, a := range h.Appended {
		if !there[a.ID] {
			v.violation(Events, a.At, "the acknowledged event %s is gone", a.ID)
		}
	}
}

// checkDeliveries checks what docs/howto/publish-events.md promises: "every event whose transaction
// committed is published", and messages arrive "in order within a term". A message that is repeated counts when it came first.
func checkDeliveries(h *record.History, v *Verdict) {
	place := map[string]int{}
	for i, e := range h.Events {
		place[e.ID] = i
	}
	delivered := map[string]bool{}
	last := map[int64]int{} // of each term
	type arrival struct {
		term int64
		id   string
	}
	seen := map[arrival]bool{}
	for _, d := range h.Deliveries {
		at, committed := place[d.ID]
		if !committed {
			v.violation(Webhooks, d.At, "message %s was sent and is not in the log", d.ID)
			continue
		}
		delivered[d.ID] = true
		if a := (arrival{d.Term, d.ID}); !seen[a] {
			seen[a] = true
			if before, found := last[d.Term]; found && at < before {
				v.violation(Webhooks, d.At, "term %d: message %s came first after %s, which follows it in the log", d.Term, d.ID, h.Events[before].ID)
			}
			last[d.Term] = max(last[d.Term], at)
		}
	}
	for _, e := range h.Events {
		if !delivered[e.ID] {
			v.violation(Webhooks, 0, "message %s was never sent", e.ID)
		}
	}
}
