package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
)

const cronLong = `Look at schedules and change them, and run commands on schedules.

Schedules are known to the database once a leader has had them: a program with
package cron, or tenure cron run with the [[cron]] tables of a configuration file.
Each tick runs once, on the leader.`

func newCron(out *output) *cobra.Command {
	return group("cron", "Schedules: look at them, change them, run commands", cronLong,
		newCronRun(out), newCronList(out), newCronNext(out), newCronHistory(out), newCronChanges(out),
		newCronTrigger(out), newCronPause(out), newCronResume(out), newCronRemove(out))
}

// withSchedules opens the schedules of a database.
func withSchedules(ctx context.Context, database *databaseFlags, fn func(*cron.Management) error) error {
	opened, err := database.work(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	err = fn(cron.NewManagement(opened.Backend, opened.pool))
	var unknown *cron.UnknownError
	if errors.As(err, &unknown) {
		return unknownName(err, "schedule", unknown.Name, unknown.Known)
	}
	return database.explain(err)
}

// oneSchedule demands one argument: a schedule.
func oneSchedule(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("name the schedule; see tenure cron list")
	case len(args) > 1:
		return usage("%s takes one schedule, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// completeSchedule offers the schedules that there are.
var completeSchedule = completeWork(func(ctx context.Context, database *workDatabase) ([]cobra.Completion, error) {
	statuses, err := cron.NewManagement(database.Backend, database.pool).List(ctx)
	var names []cobra.Completion
	for _, s := range statuses {
		names = append(names, cobra.CompletionWithDesc(s.Name, flatten(s.Expression+" "+s.Zone)))
	}
	return names, err
})
