package cron

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronAddLong = `Add a schedule that runs the job of a program's schedule at other times. Settings
without a flag are copied from that schedule. The policy is always copied. The schedule
ticks from now on, also in later terms, while a leader's program has the job. tenure
cron remove removes it.`

const cronChangeLong = `Override the settings of a schedule that its program declares. The change also applies
in later terms and after a reload of the program's file. With a new expression or time
zone it ticks from now on. Settings without a flag stay unchanged. Its job and policy
are always those of the program. tenure cron reset ends the change.`

const cronResetLong = `End all changes by tenure cron change: the leader returns to what its program
declares. A schedule that tenure cron add has added is refused with exit code 2.`

// overrideFlags are the flags for operators' settings of a schedule.
type overrideFlags struct {
	set             cron.Override
	catchUp         string
	overlap         string
	limit           flagvalue.Number
	jitter, timeout flagvalue.Duration
}

func newOverrideFlags() *overrideFlags {
	return &overrideFlags{limit: flagvalue.Number{Least: 1, Most: maxCatchUp}, jitter: flagvalue.Duration{AllowZero: true}, timeout: flagvalue.Duration{AllowZero: true}}
}

// maxCatchUp is the maximum of --catch-up-limit.
const maxCatchUp = 100_000

func (f *overrideFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.set.Expression, "expr", "", "cron `expression`")
	flags.StringVar(&f.set.Zone, "tz", "", "time `zone`, by its name in the IANA database")
	flags.StringVar(&f.catchUp, "catch-up", "", "`policy` for missed ticks: none, latest or all")
	flags.Var(&f.limit, "catch-up-limit", "maximum number of missed ticks to run, and of waiting runs")
	flags.Lookup("catch-up-limit").DefValue = ""
	flags.StringVar(&f.overlap, "overlap", "", "`policy` for a tick while an earlier run has not ended: skip, queue or allow")
	flags.Var(&f.jitter, "jitter", "maximum delay of a tick; 0 for none")
	flags.Var(&f.timeout, "timeout", "limit of one run; 0 for none")
}

// override returns the override of the flags.
func (f *overrideFlags) override(flags *pflag.FlagSet) (cron.Override, error) {
	for _, name := range []string{"expr", "tz", "catch-up", "overlap", "job"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed && flag.Value.String() == "" {
			return cron.Override{}, console.Usage("--%s is empty", name)
		}
	}
	o := f.set
	o.CatchUp, o.Overlap, o.CatchUpLimit = cron.CatchUp(f.catchUp), cron.Overlap(f.overlap), f.limit.Value
	if flags.Changed("jitter") {
		o.Jitter = inSeconds(f.jitter.Value)
	}
	if flags.Changed("timeout") {
		o.Timeout = inSeconds(f.timeout.Value)
	}
	return o, nil
}

func inSeconds(d time.Duration) *cron.Seconds {
	s := cron.Seconds(d)
	return &s
}

func newCronAdd(out *console.Output) *cobra.Command {
	f := newOverrideFlags()
	cmd := &cobra.Command{
		Use: "add SCHEDULE --job SCHEDULE --expr EXPRESSION", Short: "Add a schedule that runs an existing schedule's job", Long: cronAddLong,
		Example: "  tenure cron add backup-noon --job backup --expr '0 12 * * *'",
	}
	cmd.Flags().StringVar(&f.set.Job, "job", "", "the `schedule` whose job the new one runs")
	return f.command(out, cmd, "is added", (*cron.Admin).Add)
}

func newCronChange(out *console.Output) *cobra.Command {
	return newOverrideFlags().command(out, &cobra.Command{
		Use: "change SCHEDULE [--expr EXPRESSION] [--tz ZONE] ...", Short: "Change the times and settings of a schedule", Long: cronChangeLong,
		Example: "  tenure cron change backup --expr '0 4 * * *' --timeout 2h",
	}, "is changed", (*cron.Admin).Change)
}

// command makes cmd set a part of a schedule and print the result.
func (f *overrideFlags) command(out *console.Output, cmd *cobra.Command, done string,
	set func(schedules *cron.Admin, ctx context.Context, name string, o cron.Override, by string) error,
) *cobra.Command {
	f.register(cmd.Flags())
	return subject.Change(cmd, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		o, err := f.override(cmd.Flags())
		if err != nil {
			return err
		}
		if err := set(schedules, ctx, args[0], o, by); err != nil {
			return err
		}
		return printSchedule(ctx, out, schedules, args[0], done)
	})
}

func newCronReset(out *console.Output) *cobra.Command {
	return subject.Change(&cobra.Command{
		Use: "reset SCHEDULE", Short: "Return to what the program declares", Long: cronResetLong, Example: "  tenure cron reset backup",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, by string) error {
		if err := schedules.Reset(ctx, args[0], by); err != nil {
			return err
		}
		return printSchedule(ctx, out, schedules, args[0], "is as its program declares")
	})
}

// printSchedule prints a schedule after a change.
func printSchedule(ctx context.Context, out *console.Output, schedules *cron.Admin, name, done string) error {
	status, err := schedules.Show(ctx, name)
	if err != nil {
		return err
	}
	return out.Print(record.NewSchedule(status), console.Flatten(name)+" "+done)
}
