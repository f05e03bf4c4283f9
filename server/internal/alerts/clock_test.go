package alerts

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/server/internal/series"
)

// TestRoundsAreSteady: rounds are steady since the term began, since rounds were missing, or
// since the database's clock went back; and samples of a clock that was ahead are
// to come.
func TestRoundsAreSteady(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var c clock
	if c.isToCome(begin.Add(time.Hour), begin) {
		t.Error("before the first round nothing is known")
	}
	after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for i, step := range []struct {
		now, local, steady int
		begins, back       bool
	}{
		{now: 0, local: 0, steady: 0, begins: true},
		{now: 10, local: 10, steady: 0},
		{now: 45, local: 20, steady: 0},
		{now: 81, local: 30, steady: 81}, // it went ahead, or rounds failed
		{now: 80, local: 40, steady: 80}, // it was set right
		{now: 90, local: 50, steady: 80},
		{now: 30, local: 60, steady: 30, back: true},
		{now: 40, local: 70, steady: 30},
		{now: 50, local: 80, steady: 50, begins: true},
		{now: 10, local: 90, steady: 10, begins: true, back: true},
	} {
		if step.begins {
			c.begin()
		}
		if err := c.tick(after(step.now), after(step.local), defaultInterval); (err != nil) != step.back {
			t.Errorf("step %d: the error is %v", i, err)
		}
		if i < 6 && c.isToCome(after(step.now+3600), after(step.local)) {
			t.Errorf("step %d: a sample of an advanced clock is to come", i)
		}
		if !c.steady.Equal(after(step.steady)) {
			t.Errorf("step %d: it is steady since %v", i, c.steady)
		}
	}
	if c.isToCome(after(10+20+30), after(90+20)) {
		t.Error("a sample of now is to come")
	}
	if !c.isToCome(after(10+20+31), after(90+20)) {
		t.Error("a sample of a clock that was ahead is of now")
	}
	if err := c.tick(after(60), after(140), defaultInterval); err != nil || c.isToCome(after(3600), after(140)) {
		t.Errorf("where the clock was before, a sample is to come (%v)", err)
	}
}

// TestLongIntervalsComplete: a leader waits for the samples of a node that sends none for
// three and a half rounds, however far apart the rounds are, and again after rounds failed.
func TestLongIntervalsComplete(t *testing.T) {
	t.Parallel()
	nodes := []series.Node{{ID: uuid.New(), Name: "silent", Alive: true}}
	for _, interval := range []time.Duration{leastInterval, defaultInterval, 36 * time.Second, time.Minute, time.Hour} {
		e, err := New(Config{Interval: interval})
		if err != nil {
			t.Fatal(err)
		}
		l := &termWork{engine: e}
		begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		round := func(now time.Time) bool {
			t.Helper()
			if err := e.clock.tick(now, now, interval); err != nil {
				t.Fatal(err)
			}
			return l.complete(now, nodes, 0)
		}
		for i := range 5 {
			if got, want := round(begin.Add(time.Duration(i)*interval)), i > 3; got != want {
				t.Errorf("every %v: in round %d the results are complete: %v", interval, i, got)
			}
		}
		if round(begin.Add(4*interval + leastGap + 2*interval)) {
			t.Errorf("every %v: the results are complete after rounds that failed", interval)
		}
	}
}
