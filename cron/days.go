package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// dayRules are the days of a month depending on its length or its weekdays. It has no
// slices: an Expression must be comparable.
type dayRules struct {
	fromEnd     uint32 // bit n: n days before the last day
	nearest     uint32 // bit n: the workday nearest to day n
	lastWorkday bool
	lastOf      uint8  // bit w: the last weekday w
	nth         uint64 // bit 7(n-1)+w: weekday w for the nth time
}

// Limits of L-n, nW and #n: no month is longer.
const (
	maxFromEnd = 30
	maxDay     = 31
	maxNth     = 5
)

// matchesDay reports whether a rule of the day of the month matches.
func (r dayRules) matchesDay(t time.Time) bool {
	if r.fromEnd == 0 && r.nearest == 0 && !r.lastWorkday {
		return false
	}
	last := lastDay(t)
	if r.fromEnd&(1<<(last-t.Day())) != 0 || r.lastWorkday && t.Day() == nearestWorkday(t, last, last) {
		return true
	}
	for rest := r.nearest; rest != 0; rest &= rest - 1 {
		day := bits.TrailingZeros32(rest)
		if day <= last && t.Day() == nearestWorkday(t, day, last) {
			return true
		}
	}
	return false
}

// matchesWeekday reports whether a rule of the day of the week matches.
func (r dayRules) matchesWeekday(t time.Time) bool {
	number := (t.Day() - 1) / 7 // how many times this weekday came before
	return r.nth&(1<<(7*number+int(t.Weekday()))) != 0 ||
		r.lastOf&(1<<t.Weekday()) != 0 && t.Day()+7 > lastDay(t)
}

// lastDay returns the last day of a month.
func lastDay(t time.Time) int {
	return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// nearestWorkday returns the day from Monday to Friday nearest to a day of t's month,
// within the month.
func nearestWorkday(t time.Time, day, last int) int {
	switch time.Date(t.Year(), t.Month(), day, 0, 0, 0, 0, time.UTC).Weekday() {
	case time.Saturday:
		if day == 1 {
			return 3
		}
		return day - 1
	case time.Sunday:
		if day == last {
			return day - 2
		}
		return day + 1
	default:
		return day
	}
}

// takeRules moves the items with L, W and # out of the day fields of an expression. It
// returns the remaining fields, with an arbitrary value if a day field has no other items;
// daysOnly and weekdaysOnly report this case.
func takeRules(fields []string) (rest []string, rules dayRules, daysOnly, weekdaysOnly bool, err error) {
	rest = append(rest, fields...)
	n := len(rest)
	for _, field := range append(rest[:n-3:n-3], rest[n-2]) {
		for item := range strings.SplitSeq(strings.ToUpper(field), ",") {
			if strings.Contains(item, "#") || isDayRule(item) {
				return nil, rules, false, false, fmt.Errorf("%q is allowed only as a day of the month or of the week", item)
			}
		}
	}
	if rest[n-3], daysOnly, err = takeItems(rest[n-3], rules.addDay); err != nil {
		return nil, rules, false, false, err
	}
	rest[n-1], weekdaysOnly, err = takeItems(rest[n-1], rules.addWeekday)
	return rest, rules, daysOnly, weekdaysOnly, err
}

// takeItems calls add for each item of a field and returns the items not taken by add.
func takeItems(field string, add func(item string) (bool, error)) (rest string, none bool, err error) {
	var kept []string
	for item := range strings.SplitSeq(field, ",") {
		taken, err := add(strings.ToUpper(item))
		if err != nil {
			return "", false, err
		}
		if !taken {
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		return "1", true, nil
	}
	return strings.Join(kept, ","), false, nil
}

// isDayRule reports whether an upper-case item can only be a rule of the day of
// the month.
func isDayRule(item string) bool {
	number := strings.TrimRight(item, "LW")
	return item != "" && (strings.HasPrefix(item, "L") || number != item && strings.Trim(number, "0123456789-/") == "")
}

// addDay adds an upper-case item of the day of the month if it is a rule.
func (r *dayRules) addDay(item string) (taken bool, err error) {
	fromEnd, isFromEnd := strings.CutPrefix(item, "L-")
	day, isNearest := strings.CutSuffix(item, "W")
	switch {
	case strings.Contains(item, "#"):
		return false, fmt.Errorf("%q is not a day of the month: # belongs to the day of the week, as in FRI#2", item)
	case item == "L":
		r.fromEnd |= 1
		return true, nil
	case item == "LW":
		r.lastWorkday = true
		return true, nil
	case isFromEnd:
		n, ok := within(fromEnd, 1, maxFromEnd)
		if !ok {
			return false, fmt.Errorf("%q is not a day of the month: L- needs a number of days from 1 to %d, as in L-3", item, maxFromEnd)
		}
		r.fromEnd |= 1 << n
		return true, nil
	case isNearest && isDayRule(item):
		n, ok := within(day, 1, maxDay)
		if !ok {
			return false, fmt.Errorf("%q is not a day of the month: W needs one day from 1 to %d before it, as in 15W, or L", item, maxDay)
		}
		r.nearest |= 1 << n
		return true, nil
	case isDayRule(item):
		return false, fmt.Errorf("%q is not a day of the month: L stands alone, or as in L-3 and LW", item)
	}
	return false, nil
}

// addWeekday adds an upper-case item of the day of the week if it is a rule.
func (r *dayRules) addWeekday(item string) (taken bool, err error) {
	day, isLast := strings.CutSuffix(item, "L")
	name, number, isNth := strings.Cut(item, "#")
	switch {
	case isNth:
		weekday, known := weekdayOf(name)
		n, ok := within(number, 1, maxNth)
		if !known || !ok {
			return false, fmt.Errorf("%q is not a day of the week: # needs one day before it and a number from 1 to %d after it, as in FRI#2", item, maxNth)
		}
		r.nth |= 1 << (7*(n-1) + weekday)
		return true, nil
	case isLast:
		weekday, known := weekdayOf(day)
		if !known {
			return false, fmt.Errorf("%q is not a day of the week: L needs one day before it, as in FRIL or 5L", item)
		}
		r.lastOf |= 1 << weekday
		return true, nil
	case isDayRule(item):
		return false, fmt.Errorf("%q is not a day of the week: W belongs to the day of the month, as in 15W", item)
	}
	return false, nil
}

// weekdayOf returns a day of the week by its number or upper-case name; 0 and 7
// are Sunday.
func weekdayOf(text string) (int, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.ToUpper(day.String()[:3]) == text {
			return int(day), true
		}
	}
	n, ok := within(text, 0, 7)
	return n % 7, ok
}

// within reads a number of digits only.
func within(text string, least, most int) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= least && n <= most
}
