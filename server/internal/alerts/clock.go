package alerts

import (
	"fmt"
	"time"
)

const (
	// clockSlack is how far the database's clock may step back before measurements by the
	// old clock are forgotten.
	clockSlack = 30 * time.Second
	// leastGap is how long rounds may fail before it matters that the nodes could not
	// write samples either. For a longer interval between rounds it grows by the
	// difference from the default: an intended pause is no failure.
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

// tick takes the time of a round. There is one round in each interval. The error is for a
// step back of the database's clock: samples then have times in the future.
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

// isToCome reports whether a time is later than the database's clock can show after a
// step back. Without this condition the newest samples would seem to be in the future if
// the local clock had stopped, for example on a paused machine.
func (c *clock) isToCome(at, local time.Time) bool {
	return c.at.Before(c.ahead) && at.After(c.at.Add(local.Sub(c.local)+clockSlack))
}
