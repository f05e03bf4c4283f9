package processor

import "time"

// stepResult is the outcome of a step, and the loop's next wait.
type stepResult struct {
	why   reason
	pause time.Duration // until the next attempt, if one failed
}

// reason says why a loop has nothing to do now.
type reason int

const (
	none       reason = iota // there is work
	nothingNew               // the log has no new events
	horizon                  // new events wait for older transactions to end
	suspended                // the processor is paused or has failed
	delayed                  // an attempt failed
)

// horizonPause is the first pause before another read of events behind the horizon; see
// [doorbell.Pause].
const horizonPause = 5 * time.Millisecond

// pause is a time, doubled from one wait to the next.
type pause time.Duration

// next returns the time to wait now, between least and most.
func (p *pause) next(least, most time.Duration) time.Duration {
	now := min(max(time.Duration(*p), least), max(least, most))
	*p = pause(2 * now)
	return now
}
