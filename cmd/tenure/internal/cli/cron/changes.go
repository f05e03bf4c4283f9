package cron

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronChangesLong = `Print what was done to schedules by hand, the latest first: who triggered, paused,
resumed or removed which schedule, and when. A schedule that was removed may be
named, too.`

func newCronChanges(out *console.Output) *cobra.Command {
	var database connect.DatabaseFlags
	return connect.ChangesCommand(&database, &cobra.Command{
		Use: "changes [SCHEDULE]", Short: "Print who changed schedules, and when", Long: cronChangesLong,
		Args: oneSchedule, ValidArgsFunction: completeSchedule,
	}, func(cmd *cobra.Command, name string, most int) error {
		return withSchedules(cmd.Context(), &database, func(schedules *cron.Management) error {
			changes, err := schedules.Changes(cmd.Context(), name, most)
			if err != nil {
				return err
			}
			var records []connect.ChangeRecord
			for _, c := range changes {
				records = append(records, connect.ChangeRecord{At: console.Timestamp(c.At), By: c.By, Name: c.Schedule, Action: c.Action, Detail: c.Detail})
			}
			return connect.PrintChanges(out, "SCHEDULE", records)
		})
	})
}
