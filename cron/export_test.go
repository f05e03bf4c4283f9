package cron

import "time"

// SetOrphanWait makes a scheduler end runs that wait for a schedule it lacks after d.
func (s *Scheduler) SetOrphanWait(d time.Duration) { s.orphanWait = d }
