// Package cron has the commands on schedules.
package cron

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronLong = `Look at schedules and change them, and run commands on schedules.

Schedules are known to the database once a leader has had them: a program with
package cron, or tenure cron run with the [[cron]] tables of a configuration file.
Each tick runs once, on the leader.`

// New returns the command "tenure cron".
func New(out *console.Output) *cobra.Command {
	return console.Group("cron", "Schedules: look at them, change them, run commands", cronLong,
		newCronRun(out), newCronList(out), newCronNext(out), newCronHistory(out), newCronChanges(out),
		newCronTrigger(out), newCronPause(out), newCronResume(out), newCronRemove(out))
}

// withSchedules opens the schedules of a database.
func withSchedules(ctx context.Context, database *connect.DatabaseFlags, fn func(*cron.Management) error) error {
	opened, err := database.Work(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	err = fn(cron.NewManagement(opened.Backend, opened.Pool))
	var unknown *cron.UnknownError
	if errors.As(err, &unknown) {
		return connect.UnknownName(err, "schedule", unknown.Name, unknown.Known)
	}
	return database.Explain(err)
}

// oneSchedule demands one argument: a schedule.
func oneSchedule(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return console.Usage("name the schedule; see tenure cron list")
	case len(args) > 1:
		return console.Usage("%s takes one schedule, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// completeSchedule offers the schedules that there are.
var completeSchedule = connect.CompleteWork(func(ctx context.Context, database *connect.WorkDatabase) ([]cobra.Completion, error) {
	statuses, err := cron.NewManagement(database.Backend, database.Pool).List(ctx)
	var names []cobra.Completion
	for _, s := range statuses {
		names = append(names, cobra.CompletionWithDesc(s.Name, console.Flatten(s.Expression+" "+s.Zone)))
	}
	return names, err
})
