package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// field is a field of an expression with the values that it means.
type field struct {
	text   string
	values map[int]bool
}

func drawField(t *rapid.T, name string, low, high int) field {
	f := field{values: map[int]bool{}}
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			f.values[v] = true
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, name+" kind") {
	case 0:
		f.text = "*"
		add(low, high, 1)
	case 1:
		step := rapid.IntRange(2, high-low).Draw(t, name+" step") // as the parser demands
		f.text = fmt.Sprintf("*/%d", step)
		add(low, high, step)
	case 2:
		from := rapid.IntRange(low, high).Draw(t, name+" from")
		to := rapid.IntRange(from, high).Draw(t, name+" to")
		f.text = fmt.Sprintf("%d-%d", from, to)
		add(from, to, 1)
	default:
		var texts []string
		for _, v := range rapid.SliceOfN(rapid.IntRange(low, high), 1, 3).Draw(t, name) {
			texts = append(texts, fmt.Sprint(v))
			add(v, v, 1)
		}
		f.text = strings.Join(texts, ",")
	}
	return f
}

// drawInstant favors the days around those on which clocks are set.
func drawInstant(t *rapid.T, zone *time.Location) time.Time {
	at := time.Unix(rapid.Int64Range(1_000_000_000, 1_900_000_000).Draw(t, "at"), 0).In(zone)
	if _, end := at.ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(t, "near a change") {
		at = end.Add(time.Duration(rapid.Int64Range(-36*3600, 36*3600).Draw(t, "around")) * time.Second)
	}
	return at.In(zone)
}

// bruteNext checks every minute of some days: it returns the first tick after an
// instant, or the zero time if there is none before the end.
func bruteNext(after time.Time, hourText string, matches func(time.Time) bool) (next, end time.Time) {
	first := after.Add(-3 * 24 * time.Hour).Truncate(time.Minute)
	end = after.Add(4 * 24 * time.Hour).Truncate(time.Minute)
	consider := func(tick time.Time) {
		if tick.After(after) && (next.IsZero() || tick.Before(next)) {
			next = tick
		}
	}
	if strings.HasPrefix(hourText, "*") {
		for at := first; at.Before(end); at = at.Add(time.Minute) {
			if matches(wallClock(at)) {
				consider(at)
			}
		}
		return next, end
	}
	// Each local time that was passed ticks when it was first reached.
	highest := wallClock(first)
	for at := first.Add(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		for wall := wallClock(at); highest.Before(wall); {
			highest = highest.Add(time.Minute)
			if matches(highest) {
				consider(at)
			}
		}
	}
	return next, end
}

func TestNextMatchesBruteForce(t *testing.T) {
	t.Parallel()
	names := []string{
		"UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Cairo", "Africa/Casablanca", "Asia/Kathmandu",
		"America/Sao_Paulo", "Pacific/Apia", "America/St_Johns",
	}
	zones := map[string]*time.Location{}
	for _, name := range names {
		zones[name] = zone(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		location := zones[rapid.SampledFrom(names).Draw(t, "zone")]
		minute, hour := drawField(t, "minute", 0, 59), drawField(t, "hour", 0, 23)
		day, weekday := drawField(t, "day", 1, 31), drawField(t, "weekday", 0, 6)
		expression, err := Parse(fmt.Sprintf("%s %s %s * %s", minute.text, hour.text, day.text, weekday.text), location)
		if err != nil {
			t.Fatal(err)
		}
		matches := func(local time.Time) bool {
			onDay, onWeekday := day.values[local.Day()], weekday.values[int(local.Weekday())]
			matching := onDay && onWeekday
			if !strings.HasPrefix(day.text, "*") && !strings.HasPrefix(weekday.text, "*") {
				matching = onDay || onWeekday
			}
			return matching && minute.values[local.Minute()] && hour.values[local.Hour()]
		}
		after := drawInstant(t, location)
		want, end := bruteNext(after, hour.text, matches)
		got := expression.Next(after)
		switch {
		case want.IsZero() && got.Before(end):
			t.Fatalf("%s in %s after %v: ticks at %v; want none before %v", expression, location, after, got, end)
		case !want.IsZero() && !got.Equal(want):
			t.Fatalf("%s in %s after %v: ticks at %v; want %v", expression, location, after, got, want)
		}
	})
}

func TestIntervalTicksAreMultiplesOfTheInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(1, 10_000_000).Draw(t, "seconds")
		after := rapid.Int64Range(-2_000_000_000, 4_000_000_000).Draw(t, "after")
		expression, err := Parse(fmt.Sprintf("@every %ds", seconds), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := expression.Next(time.Unix(after, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")))
		if got.Unix() <= after || got.Unix() > after+seconds || got.Unix()%seconds != 0 || got.Nanosecond() != 0 {
			t.Fatalf("every %d s after %d ticks at %d", seconds, after, got.Unix())
		}
	})
}
