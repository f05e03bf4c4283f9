package cron

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronChangesLong = `Print the changes by operators to schedules, newest first: who triggered, paused,
resumed or removed which schedule, and when. SCHEDULE can be a removed schedule.`

func newCronChanges(out *console.Output) *cobra.Command {
	return subject.Changes(out, &cobra.Command{
		Use: "changes [SCHEDULE]", Short: "Print who changed schedules, and when", Long: cronChangesLong,
	}, "SCHEDULE", func(ctx context.Context, schedules *cron.Admin, name string, most int) ([]connect.ChangeRecord, error) {
		changes, err := schedules.Changes(ctx, name, most)
		var records []connect.ChangeRecord
		for _, c := range changes {
			records = append(records, connect.ChangeRecord{At: console.Timestamp(c.At), By: c.By, Name: c.Schedule, Action: c.Action, Detail: c.Detail})
		}
		return records, err
	})
}
