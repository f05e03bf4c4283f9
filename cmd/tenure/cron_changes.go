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
	count := number{value: 20, most: mostRows}
	cmd := &cobra.Command{
		Use: "changes [SCHEDULE]", Short: "Print who changed schedules, and when", Long: cronChangesLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneSchedule(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atLeastOne("count", count.value); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return withSchedules(cmd.Context(), &database, func(schedules *cron.Management) error {
				changes, err := schedules.Changes(cmd.Context(), name, count.value)
				if err != nil {
					return err
				}
				var records []handChangeRecord
				for _, c := range changes {
					records = append(records, handChangeRecord{timestamp(c.At), c.By, c.Schedule, c.Action, c.Detail})
				}
				return printChanges(out, "SCHEDULE", records)
			})
		},
		ValidArgsFunction: completeSchedule,
	}
	database.register(cmd.Flags())
	cmd.Flags().VarP(&count, "count", "n", "how many")
	return cmd
}
