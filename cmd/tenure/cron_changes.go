package main

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
)

const cronChangesLong = `Print what was done to schedules by hand, the latest first: who triggered, paused,
resumed or removed which schedule, and when. A schedule that was removed may be
named, too.`

func newCronChanges(out *output) *cobra.Command {
	var database databaseFlags
	return changesCommand(&database, &cobra.Command{
		Use: "changes [SCHEDULE]", Short: "Print who changed schedules, and when", Long: cronChangesLong,
		Args: oneSchedule, ValidArgsFunction: completeSchedule,
	}, func(cmd *cobra.Command, name string, most int) error {
		return withSchedules(cmd.Context(), &database, func(schedules *cron.Management) error {
			changes, err := schedules.Changes(cmd.Context(), name, most)
			if err != nil {
				return err
			}
			var records []handChangeRecord
			for _, c := range changes {
				records = append(records, handChangeRecord{At: timestamp(c.At), By: c.By, Name: c.Schedule, Action: c.Action, Detail: c.Detail})
			}
			return printChanges(out, "SCHEDULE", records)
		})
	})
}
