package service

import (
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// AtRest is the time after which a process has done what only its start needs.
const AtRest = 2 * time.Second
