package cron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// After a second time in which the clock was ahead, the ticks before those that ran in the
// first one are decided: each tick has a row, or is among the missed ones of a row.
func TestNoTickIsLostIfClockIsAheadTwice(t *testing.T) {
	w, clock := newClockWorld(t)
	var ran tally
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond, Grace: 5 * time.Second}, cron.Schedule{
		Name: "job", Expression: "* * * * * *", CatchUp: cron.CatchUpNone, Job: ran.job,
	})
	start := time.Now()
	w.Await("a tick of the true time", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
	const first, second = 40 * time.Second, 10 * time.Minute
	clock.Set(t, first)
	w.Await("a tick of the first false time", func() bool { return ran.between(start.Add(first/2), start.Add(2*first)) > 0 })
	clock.Set(t, 0)
	passed := time.Now().Add(first + time.Second) // all ticks that ran are before
	back := time.Now()
	w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })
	clock.Set(t, second)
	w.Await("a tick of the second false time", func() bool { return ran.between(start.Add(second/2), start.Add(2*second)) > 0 })
	<-time.After(time.Until(passed)) // the true time is what the test is about
	clock.Set(t, 0)
	back = time.Now()
	w.Await("ticks after the clock was right for good", func() bool { return ran.between(back, time.Now()) >= 3 })
	ran.wantOnce(t)
	lost := one[int](w, `
		SELECT coalesce(sum(extract(epoch FROM scheduled_for - before) - ticks), 0)::integer
		FROM (SELECT scheduled_for, ticks, lag(scheduled_for) OVER (ORDER BY scheduled_for) AS before FROM {runs} WHERE scheduled_for <= $1) r
		WHERE before IS NOT NULL`, time.Now())
	if lost != 0 {
		t.Errorf("%d ticks are neither run nor recorded as missed; want none", lost)
	}
}
