package cron

import (
	"math/bits"
	"time"
)

// passOver counts ticks after an instant without computing each one: if the clock is a
// year later, a leader must not compute millions. It returns the instant of the last
// counted tick, or the end of its day. It leaves at least keep ticks until the other
// instant, if there are as many.
func (e Expression) passOver(after, until time.Time, keep int) (from time.Time, passed int) {
	switch {
	case !after.Before(until) || e.interval == 0 && e.minute == 0:
		return after, 0
	case e.interval > 0:
		return e.passOverIntervals(after, until, keep)
	}
	days, counts := e.countDays(after, until)
	left := 0
	for i := len(counts) - 1; i >= 0; i-- {
		if left >= keep {
			for _, n := range counts[:i+1] {
				passed += n
			}
			return days[i+1].Add(-1), passed
		}
		left += counts[i]
	}
	return after, 0
}

func (e Expression) passOverIntervals(after, until time.Time, keep int) (from time.Time, passed int) {
	first := e.nextInterval(after)
	passed = int(until.Sub(first)/e.interval) + 1 - keep
	if passed <= 0 || until.Before(first) {
		return after, 0
	}
	return first.Add(time.Duration(passed-1) * e.interval), passed
}

// countDays returns how many ticks each part of a span has. All but the first and the last
// part are days; part i ends when day i+1 begins.
func (e Expression) countDays(after, until time.Time) (begins []time.Time, counts []int) {
	local := wallClock(after.In(e.Zone()))
	local = time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	begins = []time.Time{after.Add(1)} // a tick at after itself does not count
	for {
		local = local.AddDate(0, 0, 1)
		begin, last := instant(local, e.Zone()), begins[len(begins)-1]
		if begin.After(until) {
			return begins, counts
		}
		if begin.After(last) {
			counts = append(counts, e.countBetween(last, begin, len(counts) == 0))
			begins = append(begins, begin)
		}
	}
}

// countBetween returns how many ticks there are from begin until before end. begin and end
// are the midnights around a day unless the day is partial.
func (e Expression) countBetween(begin, end time.Time, partial bool) (n int) {
	before := begin.Add(-time.Second).In(e.Zone())
	if _, change := before.ZoneBounds(); !partial && (change.IsZero() || change.After(end)) {
		local := wallClock(begin.In(e.Zone()))
		if e.month&(1<<local.Month()) == 0 || !e.matchesDay(local) {
			return 0
		}
		return size(e.hour) * size(e.minute) * size(e.second)
	}
	for tick := e.Next(begin.Add(-1)); !tick.IsZero() && tick.Before(end); tick = e.Next(tick) {
		n++
	}
	return n
}

// size returns how many values match a field.
func size(field uint64) int { return bits.OnesCount64(field &^ wildcard) }
