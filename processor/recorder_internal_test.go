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
	})
}
