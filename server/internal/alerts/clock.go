package alerts

import (
	"fmt"
	"time"
)

const (
	// clockSlack is by how much the database's clock may be put back before what
	// was measured by it is forgotten.
	clockSlack = 30 * time.Second
	// leastGap is for how long rounds may fail before it matters that the nodes
	// could not write samples either. It is that much longer as rounds are rarer than
	// by default: a pause that is meant is no failure.
	leastGap = 35 * time.Second
)

// clock follows the database's clock from round to round. Its zero value is ready
// to use.
type clock struct {
	at     time.Time // by the database, in the last round
	local  time.Time // here, at that time
	steady time.Time // by the database: since then no round was missing
	ahead  time.Time // by the database, before its clock went back
}

// begin begins a term: who led before may have missed rounds.
func (c *clock) begin() { c.steady = time.Time{} }

// tick takes the time of a round, of which there is one in each interval. An error says
// that the database's clock was put back, so that samples have times that are to come.
func (c *clock) tick(now, local time.Time, interval time.Duration) error {
	before := c.at
	passed := now.Sub(before)
	c.at, c.local = now, local
	if c.steady.IsZero() || passed > leastGap+max(0, interval-defaultInterval) || passed < 0 {
		c.steady = now
	}
	if !before.IsZero() && passed < -clockSlack {
		c.ahead = before
		return fmt.Errorf("the database's clock went back from %s to %s; the samples are read again",
			before.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// isToCome reports whether a time is later than the database's clock can show after
// it went back. Without that condition the newest samples would seem to be in the
// future if the local clock had stopped, for example on a paused machine.
func (c *clock) isToCome(at, local time.Time) bool {
	return c.at.Before(c.ahead) && at.After(c.at.Add(local.Sub(c.local)+clockSlack))
}
