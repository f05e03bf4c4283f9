package cron

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
)

const cronRunLong = `Campaign for a role and, while this node leads it, run the commands of the [[cron]]
tables of the configuration file, each at its ticks. Start it on several machines
with the same file: each tick runs on one of them.

As with tenure run, a command and all its descendants are killed before its term can
end. When its timeout has passed, the command has --grace to end, and is then killed.
When the term is stopping, running commands may continue for --stop-timeout; they get
SIGTERM --grace before that time is over. An interrupted run is abandoned, or repeated
by the next leader if its policy is at-least-once.

The environment of a command contains TENURE_SCHEDULE, TENURE_SCHEDULED_FOR (RFC
3339), TENURE_ATTEMPT, TENURE_RUN (its number in tenure cron history),
TENURE_REQUESTED_BY if an operator requested the run, and TENURE_ROLE, TENURE_TERM
(the fencing token), TENURE_NODE and TENURE_NODE_NAME. Its standard input is empty;
its standard output and standard error are those of this program, and their last 64
KiB are stored with the run. If its exit code is not 0, the run has failed.

The role is "scheduler" unless --role or --key names another.`

// cronRunCommand runs the commands of schedules, with a node as in tenure run.
type cronRunCommand struct {
	lead.Flags

	out         *console.Output
	missedAfter flagvalue.Duration
}

func newCronRun(out *console.Output) *cobra.Command {
	c := &cronRunCommand{out: out, missedAfter: flagvalue.Duration{Value: time.Minute}}
	cmd := &cobra.Command{
		Use: "run --config FILE", Short: "Run the commands of [[cron]] on schedules, on one node", Long: cronRunLong, Args: console.NoArgs,
		Example: "  tenure cron run --config tenure.toml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), cmd) },
	}
	c.register(cmd.Flags())
	return cmd
}

func (c *cronRunCommand) register(flags *pflag.FlagSet) {
	c.Command.RegisterCommon(flags)
	c.Listen.Register(flags)
	c.OneRole = true
	c.Flags.Register(flags)
	flags.Lookup("settle").Usage = service.SettleUsage("200ms")
	c.Node.Log.SetDefault(flags, "info")
	flags.Var(&c.missedAfter, "missed-after", "how late a tick may still run as usual; catch_up applies to older ticks")
}

// role returns the role to campaign for.
func (c *cronRunCommand) role() (tenure.Role, error) {
	roles, err := c.Roles.Roles()
	switch {
	case err != nil:
		return tenure.Role{}, err
	case len(roles) > 1:
		return tenure.Role{}, console.Usage("schedules belong to one role, but %d were given", len(roles))
	case len(roles) == 0:
		return tenure.Role{}, nil // cron has a default
	}
	return roles[0], nil
}

func (c *cronRunCommand) run(ctx context.Context, cmd *cobra.Command) error {
	if err := c.Node.Database.RequireSessions(cmd.CommandPath()); err != nil {
		return err
	}
	role, err := c.role()
	if err != nil {
		return err
	}
	config, err := c.GuardedConfig(cmd)
	if err != nil {
		return err
	}
	times, err := c.Command.Timing(config)
	if err != nil {
		return err
	}
	config.StopTimeout = times.StopTimeout(config)
	environment, err := c.Environment()
	if err != nil {
		return err
	}
	file := settings.Of(cmd.Flags())
	schedules := &liveSchedules{commands: &scheduledCommands{
		Timing: times, stopTimeout: config.StopTimeout, environment: environment, output: cmd.OutOrStdout(), errors: cmd.ErrOrStderr(),
	}}
	if err := schedules.set(file.File.Schedules()); err != nil {
		return err
	}
	if len(schedules.current) == 0 {
		return console.Usage("there is nothing to run: add [[cron]] tables to the file of --%s", settings.ConfigFlag)
	}
	live := settings.Live{settings.LiveList("cron"): func(string) error { return schedules.set(file.File.Schedules()) }}
	return c.Flags.Run(ctx, config, service.Task{Live: live, Run: func(ctx context.Context, p *service.Participant, server *service.HTTPServer) error {
		target, err := c.Node.Database.Target()
		if err != nil {
			return err
		}
		pool, err := target.Pool(ctx, "cron")
		if err != nil {
			return err
		}
		defer pool.Close()
		scheduler, err := cron.New(p.Node, pool, cron.Config{
			Role: role, Grace: c.missedAfter.Value,
			Election: c.ElectionConfig(),
		})
		if err != nil {
			return err
		}
		if err := schedules.attach(scheduler, p.Node); err != nil {
			return err
		}
		return c.serve(ctx, scheduler, p, server)
	}})
}

// serve runs the scheduler until ctx ends, the node leaves, or retrying cannot
// help.
func (c *cronRunCommand) serve(ctx context.Context, scheduler *cron.Scheduler, p *service.Participant, server *service.HTTPServer) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	scheduler.Election().OnEvent(func(event tenure.Event) {
		lead.LogEvent(p.Node.Logger(), event)
		server.Publish(service.NewEventRecord(p.Node, event))
		if event.Kind == tenure.EventAcquireFailed && errors.Is(event.Err, tenure.ErrKeyMismatch) {
			cancel(event.Err)
		}
	})
	err := scheduler.Run(running)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		return cause
	}
	if ctx.Err() != nil && errors.Is(err, tenure.ErrStopped) {
		return nil // the node left because this program was asked to end
	}
	return err
}
