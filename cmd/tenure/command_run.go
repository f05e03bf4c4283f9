package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/notify"
)

// commandSettle is what --settle is by default with a command. A connection that
// the server or the network ends frees the lock in the same instant in which the
// leader hears of it; the command must be dead before another one starts.
const commandSettle = 200 * time.Millisecond

// runGuarded stands for one role and runs a command while it leads.
func (c *runCommand) runGuarded(ctx context.Context, cmd *cobra.Command, args []string) error {
	roles, err := c.roles.required()
	switch {
	case err != nil:
		return err
	case len(roles) > 1:
		return usage("a command runs for one role; %d are given", len(roles))
	}
	config, err := c.guardedConfig(cmd)
	if err != nil {
		return err
	}
	plan, err := c.command.plan(config, args)
	if err != nil {
		return err
	}
	config.StopTimeout = plan.stopTimeout(config)
	environment, err := c.environment()
	if err != nil {
		return err
	}
	server, err := c.listen.open(ctx, config.Logger)
	if err != nil {
		return err
	}
	defer server.close()
	leading := &leading{plan: plan, role: roles[0], log: config.Logger, environment: environment, server: server, ctx: ctx}
	if !term.IsTerminal(int(os.Stdin.Fd())) { // a command in the background cannot read from one
		leading.stdin = os.Stdin
	}
	signals, stop := forwardedSignals(configurationOf(cmd.Flags()).file != nil)
	defer stop()
	leading.signals = signals

	election := tenure.ElectionConfig{ReconnectGrace: c.grace.value, NoReacquire: c.noAutoAcquire}
	err = c.node.with(ctx, config, &c.member, func(ctx context.Context, p *participant) error {
		server.attach(p, c.member.name)
		stop, err := server.sample(ctx, p, &c.node.database)
		if err != nil {
			return err
		}
		defer stop()
		defer c.member.report(ctx, p, config.Logger)()
		return leading.campaign(ctx, p.node, election)
	})
	if leading.result != nil {
		if err != nil {
			config.Logger.Warn("leaving the election failed", "error", oneLine(err))
		}
		return leading.result
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // a signal came before the first session stood
	}
	return err
}

// guardedConfig is the configuration of a node that runs commands.
func (c *runCommand) guardedConfig(cmd *cobra.Command) (tenure.Config, error) {
	if !c.node.flags.Changed("log-level") {
		c.node.log.level = "info"
	}
	config, err := c.config(cmd)
	if err != nil {
		return config, err
	}
	if config.Lease == 0 {
		if config.Lease, err = c.defaultLease(); err != nil {
			return config, err
		}
	}
	if !c.node.flags.Changed("settle") {
		config.Settle = commandSettle
	}
	return config, nil
}

// defaultLease is the lease of a node that is not told one.
func (c *runCommand) defaultLease() (time.Duration, error) {
	if _, err := c.node.database.target(); err != nil {
		return 0, err
	}
	backend, err := c.node.database.offline()
	if err != nil {
		return 0, err
	}
	defer backend.Close()
	if defaulter, ok := backend.(tenure.LeaseDefaulter); ok {
		return defaulter.DefaultLease(), nil
	}
	return 10 * time.Second, nil
}

// The variables that a command finds in its environment.
const (
	roleVariable     = "TENURE_ROLE"
	termVariable     = "TENURE_TERM"
	nodeVariable     = "TENURE_NODE"
	nodeNameVariable = "TENURE_NODE_NAME"
	dsnVariable      = "TENURE_DSN"
)

// commandVariables are all that commands find, on schedules too.
var commandVariables = append([]string{roleVariable, termVariable, nodeVariable, nodeNameVariable, dsnVariable}, scheduleVariables...)

// environment is that of every run of the command: this program's, with the
// connection string only if it is wanted.
func (c *runCommand) environment() ([]string, error) {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(commandVariables, name) && !slices.Contains(notify.Variables, name) {
			kept = append(kept, entry)
		}
	}
	if c.command.passDSN {
		dsn, err := c.node.database.connectionString()
		if err != nil {
			return nil, err
		}
		if dsn != "" {
			kept = append(kept, dsnVariable+"="+dsn)
		}
	}
	return kept, nil
}

// termEnvironment adds what a term brings.
func termEnvironment(base []string, node *tenure.Node, t *tenure.Term) []string {
	return append(base[:len(base):len(base)],
		roleVariable+"="+t.Role().Name(),
		termVariable+"="+strconv.FormatInt(t.Number(), 10),
		nodeVariable+"="+node.ID().String(),
		nodeNameVariable+"="+node.Name())
}

// campaign stands until the context ends, the node leaves, or the command has
// ended for good.
func (l *leading) campaign(ctx context.Context, node *tenure.Node, config tenure.ElectionConfig) error {
	election, err := node.ElectionWith(l.role, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.node = node
	var decided bool // callbacks come one at a time
	var failure error
	election.OnEvent(func(event tenure.Event) {
		logEvent(l.log, event)
		l.server.tell(newEventRecord(node, event))
		switch event.Kind {
		case tenure.EventAcquired:
			decided, failure = true, nil
		case tenure.EventAcquireFailed:
			if errors.Is(event.Err, tenure.ErrNotActive) {
				return // it waits for others, or drains
			}
			failure = event.Err
			switch {
			case errors.Is(failure, tenure.ErrKeyMismatch): // trying again does not help
				cancel(failure)
			case errors.Is(failure, tenure.ErrHeld) && !decided && l.plan.noLeaderExit != nil:
				cancel(&exitError{*l.plan.noLeaderExit, nil})
			}
		case tenure.EventStopped:
			if l.ctx.Err() == nil && failure != nil && !errors.Is(failure, tenure.ErrHeld) {
				cancel(failure)
			}
		}
	})
	err = election.Run(ctx, l.lead)
	switch cause := context.Cause(ctx); {
	case l.ctx.Err() != nil && errors.Is(err, tenure.ErrStopped):
		return nil // the node left, as this program was asked to end
	case l.result == nil && l.ctx.Err() == nil && cause != nil:
		l.result = cause
	}
	return err
}

// logEvent logs an event. The attempts of a standby are no news.
func logEvent(log *slog.Logger, event tenure.Event) {
	level, details := slog.LevelInfo, []any{"role", event.Role.Name()}
	switch event.Kind {
	case tenure.EventStateChange, tenure.EventAcquireFailed:
		level = slog.LevelDebug
	case tenure.EventLost, tenure.EventError:
		level = slog.LevelWarn
	}
	if event.Term != nil {
		details = append(details, "term", event.Term.Number())
	}
	if event.Kind == tenure.EventStateChange {
		details = append(details, "from", event.From.String(), "to", event.To.String())
	}
	if event.Err != nil {
		details = append(details, "error", oneLine(event.Err))
	}
	log.Log(context.Background(), level, string(event.Kind), details...)
}

// stopSignal is what the command is asked with to end: what this program was
// asked with.
func (l *leading) stopSignal() syscall.Signal {
	if number, ok := interruptedBy(l.ctx).(syscall.Signal); ok {
		return number
	}
	return syscall.SIGTERM
}
