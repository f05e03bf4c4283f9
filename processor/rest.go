package processor

import "time"

// rest is what a loop does after a step.
type rest struct {
	why   reason
	pause time.Duration // until the next attempt, if one failed
}

// reason says why a loop has nothing to do for now.
type reason int

const (
	none       reason = iota // it has
	nothingNew               // the log has nothing new
	horizon                  // what is new waits for older transactions to end
	suspended                // somebody paused the processor, or it failed
	delayed                  // an attempt failed
)

// horizonPause is how soon to look again for events that wait for older
// transactions to end; it doubles while they wait.
const horizonPause = 5 * time.Millisecond

// pause is a time that doubles from one wait to the next.
type pause time.Duration

// next returns the time to wait now, from the least to the most.
func (p *pause) next(least, most time.Duration) time.Duration {
	now := min(max(time.Duration(*p), least), max(least, most))
	*p = pause(2 * now)
	return now
}
