package cron

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronTriggerLong = `Request a run of a schedule now. The leader is notified immediately, even if the
schedule is paused. If an earlier run has not ended, the new one waits for it unless
overlaps are allowed. tenure cron history shows the result.`

const cronPauseLong = `Pause a schedule. When the command has returned, no tick is claimed; runs in
progress continue. Ticks during the pause are neither recorded nor caught up.`

const cronResumeLong = `Resume a paused schedule: it ticks from now on.`

const cronRemoveLong = `Remove a schedule that no program declares, with all its runs. If the leader of
its role runs the schedule, the command is refused with exit code 2: first remove
the schedule from the program, or from the file of tenure cron run. The command asks
for confirmation; without a terminal, use --yes.`

// TriggeredRecord is a requested run as printed.
type TriggeredRecord struct {
	Schedule string `json:"schedule"`
	Run      int64  `json:"run"`
}

func newCronTrigger(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "trigger SCHEDULE", Short: "Request a run now", Long: cronTriggerLong, Example: "  tenure cron trigger backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		id, err := schedules.Trigger(ctx, args[0], by)
		if err != nil {
			return err
		}
		return out.Print(TriggeredRecord{args[0], id}, fmt.Sprintf("run %d of %s requested", id, console.Flatten(args[0])))
	})
}

// PausedRecord is a schedule that was paused or resumed.
type PausedRecord struct {
	Schedule string `json:"schedule"`
	Paused   bool   `json:"paused"`
}

func newCronPause(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "pause SCHEDULE", Short: "Pause a schedule", Long: cronPauseLong, Example: "  tenure cron pause backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Pause(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(PausedRecord{args[0], true}, console.Flatten(args[0])+" is paused")
	})
}

func newCronResume(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "resume SCHEDULE", Short: "Resume a paused schedule", Long: cronResumeLong, Example: "  tenure cron resume backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Resume(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(PausedRecord{args[0], false}, console.Flatten(args[0])+" ticks")
	})
}

// removedRecord is a schedule that was removed.
type removedRecord struct {
	Removed string `json:"removed"`
}

func newCronRemove(out *console.Output) *cobra.Command {
	cmd := subject.Change(&cobra.Command{
		Use: "remove SCHEDULE", Short: "Remove a schedule and its runs", Long: cronRemoveLong, Example: "  tenure cron remove backup --yes",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Remove(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(removedRecord{args[0]}, console.Flatten(args[0])+" is removed")
	})
	dangerous := &console.ConsentFlag{Out: out}
	dangerous.Guard(cmd, func(args []string) string { return fmt.Sprintf("Remove %s and its history?", console.Flatten(args[0])) })
	return cmd
}
