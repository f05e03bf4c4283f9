package cron

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Ticks that are passed over are counted as if each were computed, across changes of the
// clock too.
func TestTicksArePassedOverInFull(t *testing.T) {
	t.Parallel()
	zones := map[string]*time.Location{}
	names := []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Kwajalein"}
	for _, name := range names {
		zones[name] = zone(t, name)
	}
	texts := []string{"*/20 * * * *", "*/30 1-3 * * *", "0 0 * * *", "15 2 * * MON", "0 */3 1-5 * *", "@every 17m", "30 0,23 29-31 * *"}
	rapid.Check(t, func(t *rapid.T) {
		location := zones[rapid.SampledFrom(names).Draw(t, "zone")]
		expression, err := Parse(rapid.SampledFrom(texts).Draw(t, "expression"), location)
		if err != nil {
			t.Fatal(err)
		}
		after := drawInstant(t, location)
		until := after.Add(time.Duration(rapid.Int64Range(0, 60*24*3600).Draw(t, "seconds")) * time.Second)
		keep := rapid.IntRange(0, 200).Draw(t, "keep")
		from, passed := expression.passOver(after, until, keep)
		count := func(from, to time.Time) (n int) {
			for tick := expression.Next(from); !tick.IsZero() && !tick.After(to); tick = expression.Next(tick) {
				n++
			}
			return n
		}
		if n := count(after, from); n != passed {
			t.Fatalf("passed over %d ticks from %v until %v; there are %d", passed, after, from, n)
		}
		if left := count(from, until); passed > 0 && left < keep {
			t.Fatalf("left %d ticks; want at least %d", left, keep)
		}
	})
}

// A year of ticks is decided within the time that a term can wait.
func TestYearOfTicksIsDecidedSoon(t *testing.T) {
	t.Parallel()
	parsed, err := Schedule{Name: "job", Expression: "* * * * * *", CatchUp: CatchUpAll}.withDefaults().parseTimes()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 11, 29, 12, 0, 0, 0, time.UTC)
	begun := time.Now()
	p := parsed.plan(now.AddDate(-1, 0, 0), now, time.Minute, false, 0)
	var ticks int64
	for _, e := range p.entries {
		ticks += e.ticks
	}
	if ticks != 365*24*3600 || len(p.entries) != 201 || !p.until.Equal(now) {
		t.Errorf("decided %d ticks in %d rows until %v; want %d in 201", ticks, len(p.entries), p.until, 365*24*3600)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("deciding a year of ticks took %v; want less than 2s", took)
	}
}
