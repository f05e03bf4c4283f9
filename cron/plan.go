package cron

import (
	"hash/fnv"
	"time"
)

// maxMissed is how many missed ticks get a row each; older ones are counted in
// one row.
const maxMissed = 100

// timetable is a validated schedule.
type timetable struct {
	Schedule

	expression Expression
	added      bool // an operator added it
}

// entry is the row for a tick. If it represents several missed ticks, it has the time of
// the last one.
type entry struct {
	at    time.Time
	state State
	ticks int64
}

// plan is the decision about all due ticks.
type plan struct {
	entries []entry
	until   time.Time
	due     time.Time // when the last of them was due, including jitter
	late    bool      // the first of them was missed
}

// due returns when a tick should run: its time plus its jitter.
func (t timetable) due(tick time.Time) time.Time {
	most := t.Jitter.Microseconds()
	if most == 0 {
		return tick
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(t.Name + "\x00" + tick.UTC().Format(time.RFC3339))) // never fails
	return tick.Add(time.Duration(hash.Sum64()%uint64(most)) * time.Microsecond)
}

// next returns when the first tick after an instant is due, or the zero time.
func (t timetable) next(after time.Time) time.Time {
	tick := t.expression.Next(after)
	if tick.IsZero() {
		return tick
	}
	return t.due(tick)
}

// plan decides about the due ticks after handledUntil. busy reports an active run of the
// schedule; waiting is the number of waiting runs. It is pure: every node would decide the
// same.
func (t timetable) plan(handledUntil, now time.Time, grace time.Duration, busy bool, waiting int) plan {
	var p plan
	var fresh []time.Time
	missed := ticks{keep: t.CatchUpLimit + maxMissed + 1}
	begin, passed := t.expression.passOver(handledUntil, now.Add(-grace-t.Jitter), missed.keep)
	missed.count = passed
	for tick := t.expression.Next(begin); !tick.IsZero(); tick = t.expression.Next(tick) {
		due := t.due(tick)
		if due.After(now) {
			break
		}
		p.until, p.due = tick, due
		if len(fresh) == 0 && now.Sub(due) > grace { // jitter must not change the order
			missed.add(tick)
		} else {
			fresh = append(fresh, tick)
		}
	}
	p.late = missed.count > 0
	if p.late && t.CatchUp != CatchUpNone {
		for _, tick := range fresh {
			missed.add(tick)
		}
		run := 1
		if t.CatchUp == CatchUpAll {
			run = t.CatchUpLimit
		}
		fresh = missed.takeLast(run)
	}
	p.entries = missed.entries()
	for _, tick := range fresh {
		e := entry{at: tick, ticks: 1}
		switch {
		case t.Overlap == OverlapAllow, !busy && waiting == 0:
			e.state = Running
			busy = true
		case p.late && t.CatchUp == CatchUpAll, t.Overlap == OverlapQueue && waiting < t.CatchUpLimit:
			e.state = Waiting
			waiting++
		default:
			e.state = Skipped
		}
		p.entries = append(p.entries, e)
	}
	return p
}

// ticks keeps the last ticks of a sequence and counts all of them.
type ticks struct {
	keep  int
	count int
	kept  []time.Time // the last keep of them, or up to twice as many
}

func (t *ticks) add(tick time.Time) {
	if len(t.kept) >= 2*t.keep {
		t.kept = append(t.kept[:0], t.kept[t.keep:]...)
	}
	t.kept = append(t.kept, tick)
	t.count++
}

// takeLast removes the last n ticks, or all if there are fewer; n is less than
// keep.
func (t *ticks) takeLast(n int) []time.Time {
	n = min(n, len(t.kept))
	taken := t.kept[len(t.kept)-n:]
	t.kept = t.kept[:len(t.kept)-n]
	t.count -= n
	return taken
}

// entries returns the ticks as missed.
func (t *ticks) entries() []entry {
	last := t.kept[max(0, len(t.kept)-maxMissed):]
	var entries []entry
	if older := t.count - len(last); older > 0 {
		at := t.kept[len(t.kept)-len(last)-1]
		entries = append(entries, entry{at, Missed, int64(older)})
	}
	for _, tick := range last {
		entries = append(entries, entry{tick, Missed, 1})
	}
	return entries
}
