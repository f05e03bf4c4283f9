package cron

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
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

// scheduleChange is a command that changes one schedule.
type scheduleChange struct {
	out      *console.Output
	database connect.DatabaseFlags
	by       connect.ByFlag
	change   func(ctx context.Context, schedules *cron.Management, name, by string) error
}

// command adds to a command what all changes have in common.
func (c *scheduleChange) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = oneSchedule, completeSchedule
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by, err := c.by.Who(cmd.Flags())
		if err != nil {
			return err
		}
		return withSchedules(cmd.Context(), &c.database, func(schedules *cron.Management) error {
			return c.change(cmd.Context(), schedules, args[0], by)
		})
	}
	c.database.Register(cmd.Flags())
	c.by.Register(cmd.Flags())
	return cmd
}

// TriggeredRecord is a run that was asked for.
type TriggeredRecord struct {
	Schedule string `json:"schedule"`
	Run      int64  `json:"run"`
}

func newCronTrigger(out *console.Output) *cobra.Command {
	c := &scheduleChange{out: out}
	c.change = func(ctx context.Context, schedules *cron.Management, name, by string) error {
		id, err := schedules.Trigger(ctx, name, by)
		if err != nil {
			return err
		}
		return out.Print(TriggeredRecord{name, id}, fmt.Sprintf("run %d of %s is asked for", id, console.Flatten(name)))
	}
	return c.command(&cobra.Command{
		Use: "trigger SCHEDULE", Short: "Ask for a run now", Long: cronTriggerLong, Example: "  tenure cron trigger backup",
	})
}

// PausedRecord is a schedule that was paused or resumed.
type PausedRecord struct {
	Schedule string `json:"schedule"`
	Paused   bool   `json:"paused"`
}

func newCronPause(out *console.Output) *cobra.Command {
	c := &scheduleChange{out: out}
	c.change = func(ctx context.Context, schedules *cron.Management, name, by string) error {
		if err := schedules.Pause(ctx, name, by); err != nil {
			return err
		}
		return out.Print(PausedRecord{name, true}, console.Flatten(name)+" is paused")
	}
	return c.command(&cobra.Command{
		Use: "pause SCHEDULE", Short: "Keep a schedule from ticking", Long: cronPauseLong, Example: "  tenure cron pause backup",
	})
}

func newCronResume(out *console.Output) *cobra.Command {
	c := &scheduleChange{out: out}
	c.change = func(ctx context.Context, schedules *cron.Management, name, by string) error {
		if err := schedules.Resume(ctx, name, by); err != nil {
			return err
		}
		return out.Print(PausedRecord{name, false}, console.Flatten(name)+" ticks")
	}
	return c.command(&cobra.Command{
		Use: "resume SCHEDULE", Short: "Let a paused schedule tick again", Long: cronResumeLong, Example: "  tenure cron resume backup",
	})
}

// removedRecord is a schedule that was removed.
type removedRecord struct {
	Removed string `json:"removed"`
}

func newCronRemove(out *console.Output) *cobra.Command {
	c, dangerous := &scheduleChange{out: out}, &console.ConsentFlag{Out: out}
	c.change = func(ctx context.Context, schedules *cron.Management, name, by string) error {
		if err := schedules.Remove(ctx, name, by); err != nil {
			return err
		}
		return out.Print(removedRecord{name}, console.Flatten(name)+" is removed")
	}
	cmd := c.command(&cobra.Command{
		Use: "remove SCHEDULE", Short: "Forget a schedule and its runs", Long: cronRemoveLong, Example: "  tenure cron remove backup --yes",
	})
	dangerous.Guard(cmd, func(args []string) string { return fmt.Sprintf("Remove %s and its history?", console.Flatten(args[0])) })
	return cmd
}
