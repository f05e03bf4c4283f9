package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDayRulesSelectTheirDays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, expression, from, want string }{
		{"the last day", "0 9 L * *", "2026-01-31T10:00:00Z", "2026-02-28 2026-03-31 2026-04-30"},
		{"the last day of a leap year's February", "0 9 L 2 *", "2027-03-01T00:00:00Z", "2028-02-29 2029-02-28"},
		{"days before the last", "0 9 L-3 * *", "2026-02-01T00:00:00Z", "2026-02-25 2026-03-28 2026-04-27"},
		{"only long months are long enough", "0 9 L-30 * *", "2026-01-15T00:00:00Z", "2026-03-01 2026-05-01"},
		{"a workday stays", "0 9 15W * *", "2026-01-01T00:00:00Z", "2026-01-15"},
		{"a Sunday moves to Monday, a Saturday to Friday", "0 9 15W * *", "2026-02-01T00:00:00Z", "2026-02-16 2026-03-16 2026-04-15 2026-05-15 2026-06-15 2026-07-15 2026-08-14"},
		{"the first does not leave its month", "0 9 1W * *", "2026-07-15T00:00:00Z", "2026-08-03 2026-09-01"},
		{"the last does not leave its month", "0 9 31W * *", "2026-05-01T00:00:00Z", "2026-05-29 2026-07-31"},
		{"the last workday", "0 9 LW * *", "2026-01-01T00:00:00Z", "2026-01-30 2026-02-27 2026-03-31 2026-04-30 2026-05-29"},
		{"the last Friday", "0 9 * * 5L", "2026-01-01T00:00:00Z", "2026-01-30 2026-02-27 2026-03-27"},
		{"the last Sunday by name", "0 9 * * sunl", "2026-03-01T00:00:00Z", "2026-03-29"},
		{"Sunday is also 7", "0 9 * * 7L", "2026-03-01T00:00:00Z", "2026-03-29"},
		{"the second Friday", "0 9 * * FRI#2", "2026-01-01T00:00:00Z", "2026-01-09 2026-02-13 2026-03-13"},
		{"a fifth Friday is rare", "0 9 * * 5#5", "2026-01-31T00:00:00Z", "2026-05-29 2026-07-31"},
		{"lists", "0 9 L,1 * *", "2026-02-02T00:00:00Z", "2026-02-28 2026-03-01 2026-03-31"},
		{"lists of weekdays", "0 9 * * MON#1,FRIL", "2026-02-01T00:00:00Z", "2026-02-02 2026-02-27 2026-03-02"},
		{"either of both fields", "0 9 L * FRI#1", "2026-02-01T00:00:00Z", "2026-02-06 2026-02-28 2026-03-06"},
		{"days by steps must also match the weekday", "0 4 */2 * 1", "2026-01-01T00:00:00Z", "2026-01-05 2026-01-19 2026-02-09"},
		{"weekdays by steps must also match the day", "0 4 1,2 * */2", "2026-01-01T00:00:00Z", "2026-01-01 2026-02-01 2026-03-01 2026-04-02"},
		{"a star in a list", "0 4 */2,8 * 1", "2026-01-01T00:00:00Z", "2026-01-05 2026-01-19 2026-02-09"},
		{"by steps of a range, either matches", "0 4 1-31/15 * 1", "2026-01-01T05:00:00Z", "2026-01-05 2026-01-12 2026-01-16"},
		{"with seconds and days by steps", "0 0 4 */2 * 1", "2026-01-01T00:00:00Z", "2026-01-05 2026-01-19"},
		{"with seconds", "30 0 9 L * *", "2026-02-01T00:00:00Z", "2026-02-28"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, err := Parse(test.expression, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			next := at(t, test.from)
			for range strings.Fields(test.want) {
				next = e.Next(next)
				got = append(got, next.Format(time.DateOnly))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("ticks on %s; want %s", got, test.want)
			}
		})
	}
}

// dayItem is an item of a day field with the days that it means, found naively.
type dayItem struct {
	text    string
	matches func(day time.Time) bool
}

func inMonth(day time.Time, n int) time.Time { return day.AddDate(0, 0, n) }

func drawDayItem(t *rapid.T) dayItem {
	n := rapid.IntRange(1, 31).Draw(t, "day")
	switch rapid.IntRange(0, 4).Draw(t, "day kind") {
	case 0:
		return dayItem{"L", func(day time.Time) bool { return inMonth(day, 1).Month() != day.Month() }}
	case 1:
		n = min(n, maxFromEnd)
		return dayItem{fmt.Sprintf("L-%d", n), func(day time.Time) bool {
			return inMonth(day, n).Month() == day.Month() && inMonth(day, n+1).Month() != day.Month()
		}}
	case 2:
		return dayItem{fmt.Sprintf("%dW", n), func(day time.Time) bool {
			wanted := time.Date(day.Year(), day.Month(), n, 0, 0, 0, 0, time.UTC)
			if wanted.Month() != day.Month() {
				return false
			}
			for distance := 0; ; distance++ { // of two that are equally near, none is a workday
				for _, near := range []time.Time{inMonth(wanted, -distance), inMonth(wanted, distance)} {
					if near.Month() == day.Month() && near.Weekday() != time.Saturday && near.Weekday() != time.Sunday {
						return near.Equal(day)
					}
				}
			}
		}}
	case 3:
		return dayItem{"LW", func(day time.Time) bool {
			if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
				return false
			}
			for next := inMonth(day, 1); next.Month() == day.Month(); next = inMonth(next, 1) {
				if next.Weekday() != time.Saturday && next.Weekday() != time.Sunday {
					return false
				}
			}
			return true
		}}
	default:
		return dayItem{fmt.Sprint(n), func(day time.Time) bool { return day.Day() == n }}
	}
}

func drawWeekdayItem(t *rapid.T) dayItem {
	weekday := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
	text := rapid.SampledFrom([]string{fmt.Sprint(int(weekday)), weekday.String()[:3]}).Draw(t, "written")
	switch rapid.IntRange(0, 2).Draw(t, "weekday kind") {
	case 0:
		return dayItem{text + "L", func(day time.Time) bool {
			return day.Weekday() == weekday && inMonth(day, 7).Month() != day.Month()
		}}
	case 1:
		n := rapid.IntRange(1, maxNth).Draw(t, "n")
		return dayItem{fmt.Sprintf("%s#%d", text, n), func(day time.Time) bool {
			count := 0
			for earlier := day; earlier.Month() == day.Month(); earlier = inMonth(earlier, -7) {
				count++
			}
			return day.Weekday() == weekday && count == n
		}}
	default:
		return dayItem{text, func(day time.Time) bool { return day.Weekday() == weekday }}
	}
}

// drawDays returns a day field with the days that it means; nil for all.
func drawDays(t *rapid.T, name string, draw func(*rapid.T) dayItem) (string, func(time.Time) bool) {
	items := rapid.SliceOfN(rapid.Custom(draw), 0, 3).Draw(t, name)
	if len(items) == 0 {
		return "*", nil
	}
	return strings.Join(each(items, func(i dayItem) string { return i.text }), ","), func(day time.Time) bool {
		for _, item := range items {
			if item.matches(day) {
				return true
			}
		}
		return false
	}
}

func each[T, U any](all []T, of func(T) U) []U {
	result := make([]U, len(all))
	for i, one := range all {
		result[i] = of(one)
	}
	return result
}

// Ticks on the days of a naive search, which looks at one day after another.
func TestDayRulesMatchNaiveSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		days, onDay := drawDays(t, "days", drawDayItem)
		weekdays, onWeekday := drawDays(t, "weekdays", drawWeekdayItem)
		e, err := Parse(fmt.Sprintf("0 0 %s * %s", days, weekdays), nil)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(0, 6_000_000_000).Draw(t, "from"), 0).UTC()
		want := from.Truncate(24 * time.Hour)
		for found := false; !found; {
			want = inMonth(want, 1)
			found = onDay == nil && onWeekday == nil || onDay != nil && onDay(want) || onWeekday != nil && onWeekday(want)
		}
		if got := e.Next(from); !got.Equal(want) {
			t.Fatalf("%s after %v: ticks at %v; want %v", e, from, got, want)
		}
	})
}
