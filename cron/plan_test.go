package cron

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever was missed, each due tick is decided once, in order, and runs only
// as the policies allow.
func TestPlanDecidesEachTickOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schedule := Schedule{
			Name:         "some",
			Expression:   rapid.SampledFrom([]string{"@every 1s", "@every 7s", "* * * * *", "*/20 * * * * *", "0 0 29 2 *"}).Draw(t, "expression"),
			CatchUp:      rapid.SampledFrom([]CatchUp{CatchUpNone, CatchUpLatest, CatchUpAll}).Draw(t, "catch-up"),
			CatchUpLimit: rapid.IntRange(1, 20).Draw(t, "limit"),
			Overlap:      rapid.SampledFrom([]Overlap{OverlapSkip, OverlapQueue, OverlapAllow}).Draw(t, "overlap"),
			Jitter:       time.Duration(rapid.IntRange(0, 20).Draw(t, "jitter")) * time.Second,
			Job:          func(context.Context, Run) error { return nil },
		}
		table, err := schedule.withDefaults().parse()
		if err != nil {
			t.Fatal(err)
		}
		handled := time.Unix(1_770_000_000+rapid.Int64Range(0, 100_000).Draw(t, "handled until"), 0)
		now := handled.Add(time.Duration(rapid.Int64Range(-10_000, 1_000_000).Draw(t, "passed")) * time.Millisecond)
		grace := time.Duration(rapid.IntRange(0, 100).Draw(t, "grace")) * time.Second
		busy := rapid.Bool().Draw(t, "busy")
		waiting := rapid.IntRange(0, 3).Draw(t, "waiting")

		var due []time.Time
		late := 0
		for tick := table.expression.Next(handled); !tick.IsZero() && !table.due(tick).After(now); tick = table.expression.Next(tick) {
			due = append(due, tick)
			if late == len(due)-1 && now.Sub(table.due(tick)) > grace {
				late++
			}
		}
		p := table.plan(handled, now, grace, busy, waiting)
		if len(due) == 0 {
			if len(p.entries) > 0 {
				t.Fatalf("nothing is due, but %v", p.entries)
			}
			return
		}
		if last := due[len(due)-1]; !p.until.Equal(last) || !p.due.Equal(table.due(last)) {
			t.Fatalf("settled until %v; want %v", p.until, last)
		}

		counts := map[State]int{}
		settled := 0
		for i, e := range p.entries {
			settled += int(e.ticks)
			counts[e.state] += int(e.ticks)
			if !e.at.Equal(due[settled-1]) {
				t.Fatalf("entry %d is for %v; want %v", i, e.at, due[settled-1])
			}
			if e.ticks > 1 && (e.state != Missed || i > 0) {
				t.Fatalf("entry %d counts %d ticks that are %s", i, e.ticks, e.state)
			}
		}
		if settled != len(due) || len(p.entries) > len(due) {
			t.Fatalf("%d entries settle %d ticks; want %d", len(p.entries), settled, len(due))
		}

		missed := late
		switch {
		case late > 0 && schedule.CatchUp == CatchUpLatest:
			missed = len(due) - 1
		case late > 0 && schedule.CatchUp == CatchUpAll:
			missed = max(0, len(due)-schedule.CatchUpLimit)
		}
		if counts[Missed] != missed {
			t.Fatalf("%d ticks are missed; want %d", counts[Missed], missed)
		}
		rest := len(due) - missed
		inOrder := late > 0 && schedule.CatchUp == CatchUpAll
		switch {
		case schedule.Overlap == OverlapAllow:
			if counts[Running] != rest {
				t.Fatalf("%d run; want all %d", counts[Running], rest)
			}
		case counts[Running] > 1 || counts[Running] == 1 && (busy || waiting > 0):
			t.Fatalf("%d run, though busy is %v and %d wait", counts[Running], busy, waiting)
		case rest > 0 && !busy && waiting == 0 && counts[Running] == 0:
			t.Fatal("none runs, though none is in the way")
		case inOrder && counts[Skipped] > 0, schedule.Overlap == OverlapSkip && !inOrder && counts[Waiting] > 0:
			t.Fatalf("%d skipped, %d waiting", counts[Skipped], counts[Waiting])
		case schedule.Overlap == OverlapQueue && !inOrder && counts[Waiting] > schedule.CatchUpLimit:
			t.Fatalf("%d wait; at most %d", counts[Waiting], schedule.CatchUpLimit)
		}
	})
}

func TestJitterIsDeterministic(t *testing.T) {
	t.Parallel()
	tick := time.Unix(1_770_000_000, 0)
	spread := map[time.Duration]bool{}
	for _, name := range []string{"a", "b", "c", "d"} {
		table := timetable{Schedule: Schedule{Name: name, Jitter: time.Hour}}
		delay := table.due(tick).Sub(tick)
		if delay < 0 || delay >= time.Hour || delay != table.due(tick.In(time.Local)).Sub(tick) {
			t.Errorf("%s is delayed by %v", name, delay)
		}
		spread[delay] = true
	}
	if len(spread) != 4 {
		t.Errorf("four names are delayed by %v", spread)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"@every 1s", "* * * * * *", "30 2 * * *", "0 0 29 2 *"} {
		b.Run(text, func(b *testing.B) {
			newYork, err := time.LoadLocation("America/New_York")
			if err != nil {
				b.Fatal(err)
			}
			e, err := Parse(text, newYork)
			if err != nil {
				b.Fatal(err)
			}
			start := time.Unix(1_770_000_000, 0)
			for at := start; b.Loop(); {
				if at = e.Next(at); at.Year() > 2100 {
					at = start
				}
			}
		})
	}
}
