package cron

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronBackfillLong = `Request runs of the ticks from --from until before --to that have no run, or were missed
or skipped. The leader runs them in order. Ticks that have run before are left out,
whatever the outcome: each tick runs at most once. While the schedule is paused, the
runs wait. The ticks are computed from the current expression, at most 1000.`

func newCronBackfill(out *console.Output) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "backfill SCHEDULE --from TIME --to TIME", Short: "Run the past ticks that have no run", Long: cronBackfillLong,
		Example: "  tenure cron backfill backup --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z",
	}
	cmd.Flags().StringVar(&from, "from", "", "`time` of the earliest tick, in RFC 3339")
	cmd.Flags().StringVar(&to, "to", "", "`time` of the end of the range, in RFC 3339; a tick at that time is left out")
	var begin, end time.Time
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		if err := subject.One(cmd, args); err != nil {
			return err
		}
		if begin, err = rangeEnd("from", from); err == nil {
			end, err = rangeEnd("to", to)
		}
		return err
	}
	cmd.ValidArgsFunction = subject.Complete
	return subject.Change(cmd, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		done, err := schedules.Backfill(ctx, args[0], begin, end, by)
		if err != nil {
			return err
		}
		return out.Print(record.BackfilledSchedule{Schedule: args[0], Ticks: done.Ticks, Runs: done.Runs},
			fmt.Sprintf("%s: ticks in the range %d, runs requested %d", console.Flatten(args[0]), done.Ticks, done.Runs))
	})
}

// rangeEnd reads the time of a flag.
func rangeEnd(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, console.Usage("--%s is %q; it must be a time in RFC 3339, like 2026-03-07T12:00:00-05:00", flag, text)
	}
	return at, nil
}
