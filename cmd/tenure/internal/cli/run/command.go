package run

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// runGuarded campaigns for one role and runs a command while it leads.
func (c *runCommand) runGuarded(ctx context.Context, cmd *cobra.Command, args []string) error {
	roles, err := c.Roles.Required()
	switch {
	case err != nil:
		return err
	case len(roles) > 1:
		return console.Usage("a command runs for one role, but %d were given", len(roles))
	}
	config, err := c.GuardedConfig(cmd)
	if err != nil {
		return err
	}
	plan, err := c.Command.Plan(config, args)
	if err != nil {
		return err
	}
	if err := plan.Slots.Validate(roles[0]); err != nil {
		return err
	}
	config.StopTimeout, c.Node.Grace = plan.StopTimeout(config), plan.Grace
	environment, err := c.Environment()
	if err != nil {
		return err
	}
	leading := &commandRunner{plan: plan, stopTimeout: config.StopTimeout, role: roles[0], log: config.Logger, environment: environment, ctx: ctx, result: &result{}}
	// A command in the background cannot read from a terminal, and several commands cannot share an input.
	if plan.Slots.PerNode == 1 && !term.IsTerminal(int(os.Stdin.Fd())) {
		leading.stdin = os.Stdin
	}
	signals, stop := forwardedSignals(settings.Of(cmd.Flags()).File != nil)
	defer stop()
	leading.signals = signals

	election := c.ElectionConfig()
	err = c.Flags.Run(ctx, config, service.Task{Run: func(ctx context.Context, p *service.Participant, server *service.HTTPServer) error {
		leading.server = server
		return leading.campaign(ctx, p.Node, election)
	}})
	if result := leading.result.get(); result != nil {
		if err != nil {
			config.Logger.Warn("leaving the election failed", "error", console.OneLine(err))
		}
		return result
	}
	if plan.Once && err == nil && ctx.Err() != nil { // 0 would mean that the command has done its work
		return console.NotAcquired("interrupted before the command was done")
	}
	return err
}

// campaign campaigns until ctx ends, the node leaves, or the command has ended
// for good.
func (l *commandRunner) campaign(ctx context.Context, node *tenure.Node, config tenure.ElectionConfig) error {
	elections, run, err := l.elections(node, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.node, l.log = node, node.Logger() // a log that blocks must not delay the end of the command
	seen := observed{runner: l, cancel: cancel, of: len(elections)}
	for _, election := range elections {
		seen.follow(election)
	}
	err = run(ctx)
	switch cause := context.Cause(ctx); {
	case l.ctx.Err() != nil && errors.Is(err, tenure.ErrStopped):
		return nil // the node left because this program was asked to end
	case l.ctx.Err() == nil && cause != nil:
		l.result.set(cause)
	case l.ctx.Err() == nil && err == nil:
		return l.result.getLoss()
	}
	return err
}

// stopSignal returns the signal that requests the command to end: the one received by this
// program.
func (l *commandRunner) stopSignal() syscall.Signal {
	if number, ok := console.InterruptedBy(l.ctx).(syscall.Signal); ok {
		return number
	}
	return syscall.SIGTERM
}
