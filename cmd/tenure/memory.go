package main

import (
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

// atRest is when a process has done what only starting needs.
const atRest = 2 * time.Second
