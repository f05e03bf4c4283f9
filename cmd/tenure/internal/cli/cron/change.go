package cron

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronTriggerLong = `Request a run of a schedule now. The leader is notified immediately, even if the
schedule is paused. If an earlier run has not ended, the new one waits for it unless
overlaps are allowed. tenure cron history shows the result.`

const cronPauseLong = `Pause a schedule. When the command has returned, no tick is claimed; runs in
progress continue. Ticks during the pause are neither recorded nor caught up.`

const cronResumeLong = `Resume a paused schedule: it ticks from now on.`

const cronRemoveLong = `Remove a schedule that tenure cron add has added, or that no program declares, with all
its runs. While the leader's program declares the schedule, the command is refused with
exit code 2: first remove the schedule from the program, or from the file of tenure cron
run. The command asks for confirmation; without a terminal, use --yes.`

func newCronTrigger(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "trigger SCHEDULE", Short: "Request a run now", Long: cronTriggerLong, Example: "  tenure cron trigger backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		id, err := schedules.Trigger(ctx, args[0], by)
		if err != nil {
			return err
		}
		return out.Print(record.TriggeredSchedule{Schedule: args[0], Run: id}, fmt.Sprintf("run %d of %s requested", id, console.Flatten(args[0])))
	})
}

func newCronPause(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "pause SCHEDULE", Short: "Pause a schedule", Long: cronPauseLong, Example: "  tenure cron pause backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Pause(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(record.PausedSchedule{Schedule: args[0], Paused: true}, console.Flatten(args[0])+" is paused")
	})
}

func newCronResume(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "resume SCHEDULE", Short: "Resume a paused schedule", Long: cronResumeLong, Example: "  tenure cron resume backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Resume(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(record.PausedSchedule{Schedule: args[0]}, console.Flatten(args[0])+" ticks")
	})
}

func newCronRemove(out *console.Output) *cobra.Command {
	cmd := subject.Change(&cobra.Command{
		Use: "remove SCHEDULE", Short: "Remove a schedule and its runs", Long: cronRemoveLong, Example: "  tenure cron remove backup --yes",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Remove(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(record.RemovedSchedule{Removed: args[0]}, console.Flatten(args[0])+" is removed")
	})
	dangerous := &console.ConsentFlag{Out: out}
	dangerous.Guard(cmd, func(args []string) string { return fmt.Sprintf("Remove %s and its history?", console.Flatten(args[0])) })
	return cmd
}
