package tenure_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// unanswered leads on a clock whose wall reading the test steps, with heartbeats
// that are not answered: trust ends 9 s after the start of the bubble, whose wall
// clock is not stepped, unless change sets another lease.
func unanswered(t *testing.T, test func(clock *steppedClock, term *tenure.Term), change ...func(*tenure.Config)) {
	synctest.Test(t, func(t *testing.T) {
		clock, answered := &steppedClock{Clock: clocks.System()}, make(chan struct{})
		db := newDatabase()
		node := open(t, db, append(change, func(c *tenure.Config) { c.Clock = clock })...)
		defer closeNode(t, node)
		defer close(answered)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		db.last().set(func(c *conn) {
			c.onHeartbeat = func() error {
				<-answered
				return nil
			}
		})
		test(clock, term)
	})
}

// A wall clock that is set back does not extend trust: the monotonic clock ends
// it on time (Invariant 1).
func TestMonotonicClockEndsTrust(t *testing.T) {
	unanswered(t, func(clock *steppedClock, term *tenure.Term) {
		begun := time.Now()
		clock.step(-time.Hour)
		want(t, "invariant 1: time that the term remains valid", term.Remaining(), 9*time.Second)
		select {
		case <-term.Context().Done():
			if passed := time.Since(begun); passed != 9*time.Second {
				t.Errorf("invariant 1: the context was canceled after %v, not with the end of trust after 9s", passed)
			}
		case <-time.After(time.Minute):
			t.Error("invariant 1: a wall clock that was set back keeps the context from being canceled")
		}
		if term.Valid() {
			t.Error("invariant 1: a wall clock that was set back prolongs trust")
		}
	})
}

// A wall clock that jumps ahead ends trust at the next tick, even if nothing
// calls the term (Invariant 1).
func TestWallClockJumpEndsTermWithinOneTick(t *testing.T) {
	unanswered(t, func(clock *steppedClock, term *tenure.Term) {
		begun := time.Now()
		clock.step(4500 * time.Millisecond)
		want(t, "invariant 1: time that the term remains valid", term.Remaining(), 4500*time.Millisecond)
		<-term.Context().Done()
		if passed := time.Since(begun); passed != 4500*time.Millisecond {
			t.Errorf("invariant 1: the context was canceled after %v, not with the end of trust after 4.5s", passed)
		}
	})
	for lease, tick := range map[time.Duration]time.Duration{
		10 * time.Second: time.Second,
		time.Minute:      time.Second,
		time.Second:      100 * time.Millisecond, // a tenth of the lease
	} {
		unanswered(t, func(clock *steppedClock, term *tenure.Term) {
			begun := time.Now()
			clock.step(time.Hour)
			<-term.Context().Done()
			if passed := time.Since(begun); passed > tick {
				t.Errorf("invariant 1: with a lease of %v, the context was canceled %v after the machine woke up; want at most %v", lease, passed, tick)
			}
		}, func(c *tenure.Config) { c.Lease = lease })
	}
}
