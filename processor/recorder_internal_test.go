package processor

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMeasurementsAreDue: a look that found no event is recorded when figures change, and
// every 15 s otherwise; a loop that does not look is counted for, every 5 s.
func TestMeasurementsAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		begun := time.Now()
		check := func(what string, wantLook, wantCount bool, behind int64) {
			t.Helper()
			empty, count := g.due(time.Now())
			if !empty.IsZero() != wantLook || count != wantCount {
				t.Errorf("%v: %s: a look is due: %v, a count: %v; want %v, %v", time.Since(begun), what, !empty.IsZero(), count, wantLook, wantCount)
			}
			switch {
			case count:
				g.record(measurement{at: time.Now(), backlog: backlog{behind: behind}})
			case !empty.IsZero():
				g.record(measurement{at: empty})
			}
		}
		check("nothing is known", false, true, 3)
		time.Sleep(4 * time.Second)
		check("the loop runs a batch", false, false, 0)
		time.Sleep(time.Second)
		check("the loop still runs the batch", false, true, 3)
		time.Sleep(time.Second)
		g.sawNothing()
		g.rest(true)
		check("the events are handled", true, false, 0)
		time.Sleep(10 * time.Second)
		g.sawNothing()
		check("the loop rests and polls", false, false, 0)
		time.Sleep(5 * time.Second)
		check("the loop rests", true, false, 0)
		time.Sleep(restInterval)
		check("the loop polls seldom", false, true, 0)
		g.rest(false)
		time.Sleep(measureInterval)
		check("the loop hangs", false, true, 7)
		time.Sleep(time.Second)
		g.sawNothing()
		g.rest(true)
		check("the events are handled again", true, false, 0)
		time.Sleep(3 * time.Second)
		g.sawNothing()
		g.rest(false)
		time.Sleep(measureInterval)
		check("the loop hangs after a look that was not recorded", false, true, 2)
	})
}

// Processors that came to rest at different times are recorded together after a while:
// what a node sends at rest does not grow with the number of its processors.
func TestProcessorsAtRestAreRecordedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder{loops: make([]*loop, 50)}
		for i := range r.loops {
			r.loops[i] = new(loop)
		}
		second := func(number int) (sends bool) {
			for i, l := range r.loops {
				if number >= i {
					l.gauge.sawNothing()
					l.gauge.rest(true)
				}
			}
			all, counting := r.due(time.Now())
			for _, l := range counting {
				l.gauge.record(measurement{at: time.Now(), backlog: backlog{behind: 1}})
			}
			for _, m := range all {
				m.loop.gauge.record(m)
			}
			time.Sleep(time.Second)
			return len(all)+len(counting) > 0
		}
		sent := 0
		for number := range 120 {
			if second(number) && number >= 60 {
				sent++
			}
		}
		if sent > 60/15 {
			t.Errorf("at rest 50 processors are recorded %d times a minute; want once each %s", sent, restInterval)
		}
	})
}
