package cron

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronChangesLong = `Print what was done to schedules by hand, the latest first: who triggered, paused,
resumed or removed which schedule, and when. A schedule that was removed may be
named, too.`

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
