// Command tenure elects leaders on PostgreSQL from the command line, shows who
// leads, and says what would break an election.
package main

import (
	"os"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none
)

func main() { os.Exit(realMain()) }
