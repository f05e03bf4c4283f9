// Package cron implements the commands on schedules.
package cron

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/connect"
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

// subject describes schedules to the shared commands.
var subject = &connect.Subject[*cron.Admin]{
	Name: "schedule", List: "tenure cron list",
	Open: func(database *connect.WorkDatabase) *cron.Admin {
		return cron.NewAdmin(database.Backend, database.Pool)
	},
	Offer: func(ctx context.Context, schedules *cron.Admin) ([]cobra.Completion, error) {
		statuses, err := schedules.List(ctx)
		var names []cobra.Completion
		for _, s := range statuses {
			names = append(names, cobra.CompletionWithDesc(s.Name, console.Flatten(s.Expression+" "+s.Zone)))
		}
		return names, err
	},
	Unknown: func(err error) (name string, known []string) {
		var unknown *cron.UnknownError
		if errors.As(err, &unknown) {
			return unknown.Name, unknown.Known
		}
		return "", nil
	},
}
