package tenure

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// handClock is a clock that a test moves. Its timers never fire.
type handClock struct{ now clocks.Instant }

func (c *handClock) Now() clocks.Instant                         { return c.now }
func (c *handClock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// Trust that has ended is never revived, whichever call notices the end
// (Invariant 1).
func TestEndedTrustIsNotRevived(t *testing.T) {
	for name, end := range map[string]func(*trust, *handClock){
		"a reader saw the deadline":  func(tr *trust, c *handClock) { c.now.Mono += 2 * time.Second; tr.valid() },
		"unnoticed deadline":         func(_ *trust, c *handClock) { c.now.Mono += 2 * time.Second },
		"the wall clock jumped once": func(_ *trust, c *handClock) { c.now.Wall = c.now.Wall.Add(2 * time.Second) },
		"it was ended":               func(tr *trust, _ *handClock) { _ = tr.end(ErrSessionLost) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := &handClock{clocks.Instant{Mono: time.Hour, Wall: time.Unix(1e9, 0)}}
			tr := &trust{clock: clock, onExpired: func() {}}
			if !tr.begin(clock.now.Add(time.Second)) || !tr.valid() {
				t.Fatal("trust did not begin")
			}
			end(tr, clock)
			if tr.extend(clock.now.Add(time.Hour)) {
				t.Error("invariant 1: a heartbeat extended trust that had ended")
			}
			clock.now.Wall = time.Unix(1e9, 0) // the clock is set back
			if tr.valid() || tr.maySend() || tr.remaining(time.Hour) > 0 {
				t.Error("invariant 1: trust that had ended was revived")
			}
			if tr.add(&Term{}) {
				t.Error("invariant 1: a term began after trust had ended")
			}
		})
	}
}
