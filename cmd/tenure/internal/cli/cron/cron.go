// Package cron implements the commands on schedules.
package cron

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
)

const cronLong = `Show and change schedules, and run commands on schedules.

Schedules come from Go programs with package cron, and from the [[cron]] tables of a
configuration file with tenure cron run. A schedule is in the database once a leader
has run it. The leader runs its ticks. Operators can change the times of a schedule
and add schedules that run the same job at other times.`

// New returns the command "tenure cron".
func New(out *console.Output) *cobra.Command {
	return console.Group("cron", "Show, change and run schedules", cronLong,
		newCronRun(out), newCronList(out), newCronNext(out), newCronHistory(out),
		newCronTrigger(out), newCronBackfill(out), newCronAdd(out), newCronChange(out), newCronReset(out), newCronPause(out), newCronResume(out), newCronRemove(out))
}
