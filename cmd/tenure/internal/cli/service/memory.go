package service

import (
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// AtRest is when a process has done what only starting needs.
const AtRest = 2 * time.Second
