package cron

import "time"

// databaseClock extrapolates the database's clock from the last reading. It may lag by the
// duration of the reading but is never ahead: a tick due by this clock is due.
type databaseClock struct {
	shown  time.Time // by the database
	readAt time.Time // when this process learned it
}

func (c *databaseClock) set(shown time.Time) { *c = databaseClock{shown, time.Now()} }

func (c *databaseClock) now() time.Time { return c.shown.Add(time.Since(c.readAt)) }
