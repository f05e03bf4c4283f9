package processor

import "time"

// stepResult says what a loop does after a step.
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

// horizonPause is the first pause before reading again events that wait for
// older transactions to end; see [doorbell.Pause].
const horizonPause = 5 * time.Millisecond

// pause is a time that doubles from one wait to the next.
type pause time.Duration

// next returns the time to wait now, between least and most.
func (p *pause) next(least, most time.Duration) time.Duration {
	now := min(max(time.Duration(*p), least), max(least, most))
	*p = pause(2 * now)
	return now
}
