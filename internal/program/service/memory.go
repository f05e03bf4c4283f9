package service

import (
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// AtRest is the time after which the work of a process's start is over.
const AtRest = 2 * time.Second
