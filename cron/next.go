package cron

import (
	"math/bits"
	"time"
)

// horizon is how many years are searched for a tick: the next February 29 is up
// to eight years away, and falls on a given day of the week within forty.
const horizon = 41

// Next returns the first tick after an instant, in the expression's zone, or
// the zero time if there is none.
//
// When clocks change, an expression with fixed hours ticks once for each matching local
// time: for a missing local time, at the first instant after the gap; for a repeated one,
// at the first occurrence. Ticks at the same instant are one tick. If its hours begin with
// "*", an expression follows instants: a repeated local time ticks twice, and a missing
// one does not tick.
func (e Expression) Next(after time.Time) time.Time {
	switch {
	case e.interval > 0:
		return e.nextInterval(after)
	case e.minute == 0:
		return time.Time{}
	case e.everyHour:
		return e.nextInstant(after)
	}
	local := wallClock(after.In(e.Zone()))
	for limit := local.Year() + horizon; ; {
		local = e.nextMatch(local, limit)
		if local.IsZero() {
			return time.Time{}
		}
		if at := instant(local, e.Zone()); at.After(after) {
			return at
		}
	}
}

// nextInterval returns the next multiple of the interval since the epoch.
func (e Expression) nextInterval(after time.Time) time.Time {
	epoch := time.Unix(0, 0)
	passed := after.Sub(epoch) // correct within 292 years of the epoch
	count := passed / e.interval
	if passed < 0 && passed%e.interval != 0 {
		count--
	}
	return epoch.Add((count + 1) * e.interval).In(e.Zone())
}

// nextInstant searches the periods with one offset from UTC. In each of them, local times
// and instants have the same order.
func (e Expression) nextInstant(after time.Time) time.Time {
	at := after.In(e.Zone())
	limit := at.Year() + horizon
	for before := wallClock(at); ; {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		local := e.nextMatch(before, limit)
		if local.IsZero() {
			return time.Time{}
		}
		found := time.Unix(local.Unix()-int64(offset), 0).In(e.Zone())
		if end.IsZero() || found.Before(end) {
			return found
		}
		at = end.In(e.Zone())
		before = wallClock(at).Add(-time.Second)
	}
}

// wallClock returns the local time, to the second, as if it were in UTC:
// arithmetic on it ignores offset changes.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// instant returns when a zone's local time first has this value, or if it never
// does, the first instant after the gap.
func instant(local time.Time, zone *time.Location) time.Time {
	const day = 24 * 60 * 60
	seconds := local.Unix()
	at := time.Unix(seconds-2*day, 0).In(zone) // offsets are less than a day
	for {
		_, offset := at.Zone()
		start, end := at.ZoneBounds()
		found := time.Unix(seconds-int64(offset), 0).In(zone)
		switch {
		case !start.IsZero() && found.Before(start):
			return start.In(zone) // the local time is in the gap before it
		case end.IsZero() || found.Before(end):
			return found
		}
		at = end.In(zone)
	}
}

// nextMatch returns the first local time after another with a match in all fields, or the
// zero time if there is none up to the year limit.
func (e Expression) nextMatch(after time.Time, limit int) time.Time {
	t := after.Add(time.Second)
	for t.Year() <= limit {
		if e.month&(1<<t.Month()) == 0 {
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if !e.matchesDay(t) {
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
			continue
		}
		hour, minute, second := t.Hour(), t.Minute(), t.Second()
		h, ok := following(e.hour, hour)
		if !ok {
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if h > hour {
			minute, second = 0, 0
		}
		m, ok := following(e.minute, minute)
		if !ok {
			t = time.Date(t.Year(), t.Month(), t.Day(), h+1, 0, 0, 0, time.UTC)
			continue
		}
		if m > minute {
			second = 0
		}
		s, ok := following(e.second, second)
		if !ok {
			t = time.Date(t.Year(), t.Month(), t.Day(), h, m+1, 0, 0, time.UTC)
			continue
		}
		return time.Date(t.Year(), t.Month(), t.Day(), h, m, s, 0, time.UTC)
	}
	return time.Time{}
}

func (e Expression) matchesDay(t time.Time) bool {
	day := e.day&(1<<t.Day()) != 0 || e.rules.matchesDay(t)
	weekday := e.weekday&(1<<t.Weekday()) != 0 || e.rules.matchesWeekday(t)
	if e.eitherDay {
		return day || weekday
	}
	return day && weekday
}

// following returns the smallest match of a field from least on.
func following(field uint64, least int) (int, bool) {
	rest := field &^ wildcard >> least << least
	return bits.TrailingZeros64(rest), rest != 0
}
