package cron

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronChangesLong = `Print the changes by operators to schedules, newest first: who triggered, added,
changed, reset, paused, resumed or removed which schedule, and when. SCHEDULE can be
a removed schedule.`

func newCronChanges(out *console.Output) *cobra.Command {
	return subject.Changes(out, &cobra.Command{
		Use: "changes [SCHEDULE]", Short: "Print who changed schedules, and when", Long: cronChangesLong,
	}, "SCHEDULE", func(ctx context.Context, schedules *cron.Admin, name string, most int) (record.OperatorChanges, error) {
		changes, err := schedules.Changes(ctx, name, most)
		return record.NewScheduleChanges(changes), err
	})
}
