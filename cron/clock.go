package cron

import "time"

// databaseClock follows the clock of the database between two readings of it.
// It may lag by the time that a reading took, but does not run ahead: a tick
// that is due by it is due.
type databaseClock struct {
	shown  time.Time // by the database
	readAt time.Time // when that was known here
}

func (c *databaseClock) set(shown time.Time) { *c = databaseClock{shown, time.Now()} }

func (c *databaseClock) now() time.Time { return c.shown.Add(time.Since(c.readAt)) }
