package cron

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronTriggerLong = `Ask for a run of a schedule now. The leader hears of it at once, also while the
schedule is paused; if an earlier run has not ended, this one waits for that unless
overlaps are allowed. tenure cron history tells what becomes of it.`

const cronPauseLong = `Keep a schedule from ticking. When the command has returned, no tick is claimed any
more; what runs goes on. The ticks that pass are neither recorded nor caught up.`

const cronResumeLong = `Let a paused schedule tick again, from now on.`

const cronRemoveLong = `Forget a schedule that no program has any more, with all its runs. One that the
leader of its role knows is refused, exit code 2: take it out of the program, or
out of the file of tenure cron run, first. A terminal is asked; without one, give
--yes.`

// TriggeredRecord is a run that was asked for.
type TriggeredRecord struct {
	Schedule string `json:"schedule"`
	Run      int64  `json:"run"`
}

func newCronTrigger(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "trigger SCHEDULE", Short: "Ask for a run now", Long: cronTriggerLong, Example: "  tenure cron trigger backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		id, err := schedules.Trigger(ctx, args[0], by)
		if err != nil {
			return err
		}
		return out.Print(TriggeredRecord{args[0], id}, fmt.Sprintf("run %d of %s is asked for", id, console.Flatten(args[0])))
	})
}

// PausedRecord is a schedule that was paused or resumed.
type PausedRecord struct {
	Schedule string `json:"schedule"`
	Paused   bool   `json:"paused"`
}

func newCronPause(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "pause SCHEDULE", Short: "Keep a schedule from ticking", Long: cronPauseLong, Example: "  tenure cron pause backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Pause(ctx, args[0], by); err != nil {
			return err
		}
		return out.Print(PausedRecord{args[0], true}, console.Flatten(args[0])+" is paused")
	})
}

func newCronResume(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "resume SCHEDULE", Short: "Let a paused schedule tick again", Long: cronResumeLong, Example: "  tenure cron resume backup",
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
		Use: "remove SCHEDULE", Short: "Forget a schedule and its runs", Long: cronRemoveLong, Example: "  tenure cron remove backup --yes",
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
