// Package run implements these commands:
//
//   - run and acquire, which take part in elections
//   - the nodes of the demonstration
//   - health, which queries such a node
package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
)

const runLong = `Campaign for one or more roles and print each event until a signal, or, with a
command, run it while this node leads.

With -- COMMAND there is one role, and the command runs while this node leads it. With
--slots N the role has up to N leaders, each in a slot: a role with the name NAME/1 to
NAME/N, which the other commands show. Each leader runs its own command.
Before the term can end, the command and all its descendants are killed;
docs/howto/run-a-command.md lists the exceptions. When the term is stopping, and on
SIGTERM or SIGINT, they first have --stop-timeout to end, and this node still leads;
when heartbeats fail, they have --grace. The command has TENURE_ROLE,
TENURE_TERM (the fencing token), TENURE_NODE and TENURE_NODE_NAME in its environment,
with --slots also TENURE_SLOT, the number of its slot.
Its standard input, output and error are those of this program, which logs events on
standard error. If the command ends on its own and --restart does not restart it,
this program exits with its exit code. With --once it exits 1 if a signal ends it before
the command is done. With --no-auto-reacquire it exits 0 after a step-down, and 3 after a
loss.

Without a command:

On SIGTERM or SIGINT the roles are released and the program exits 0. If the database
cannot be reached, the program retries until a signal. If the database cannot be used
(because of a pooler, a missing privilege or a newer schema), the program exits
immediately.

With --no-auto-reacquire the node does not campaign again after it lost a role or
stepped down. When it no longer campaigns for any role, the program exits 0, or 3 if
it lost a role, or an attempt failed for any reason except that another node leads.

With -o json each event is one object per line, with time, event (state_change with
from and to, acquired, lost, released, acquire_failed, error, stopped), role, term,
node and node_name.`

// runCommand campaigns for roles.
type runCommand struct {
	lead.Flags

	out *console.Output
}

// New returns the command "tenure run".
func New(out *console.Output) *cobra.Command {
	c := &runCommand{out: out}
	cmd := &cobra.Command{
		Use:   "run --role NAME [-- COMMAND [ARGUMENT...]]",
		Short: "Campaign for roles and print each event, or run a command while leading",
		Long:  runLong,
		Example: "  tenure run --dsn postgres://app@db/app --role billing\n  tenure run --key1 1234 --key2 5678 -o json\n" +
			"  tenure run --role reports -- ./reports --port 8080\n  tenure run --role backup --once --no-leader-exit 0 -- ./backup.sh\n" +
			"  tenure run --role worker --slots 3 -- ./worker",
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash == 0 && len(args) == 0:
				return console.Usage("there is no command after --")
			case dash != 0 && len(args) > 0:
				return console.Usage("write -- before the command: tenure run --role NAME -- %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = settings.Of(cmd.Flags()).File.Command()
			}
			if len(args) > 0 {
				return c.runGuarded(cmd.Context(), cmd, args)
			}
			if err := c.Command.Unused(); err != nil {
				return err
			}
			return c.run(cmd.Context(), cmd)
		},
	}
	c.Command.Register(cmd.Flags())
	c.Listen.Register(cmd.Flags())
	c.Register(cmd.Flags())
	cmd.SetUsageFunc(usage)
	cmd.Flags().Lookup("log-level").Usage += "; with a command the default is info"
	cmd.Flags().StringVar(&c.Node.Agent, "agent", "", "`path` of the socket of this host's agent, which holds the connections to the database; see tenure agent")
	return cmd
}

// run campaigns until ctx ends.
func (c *runCommand) run(ctx context.Context, cmd *cobra.Command) error {
	roles, err := c.Roles.Required()
	if err != nil {
		return err
	}
	config, err := c.Config(cmd)
	if err != nil {
		return err
	}
	election := c.ElectionConfig()
	return c.Flags.Run(ctx, config, service.Task{Run: func(ctx context.Context, p *service.Participant, server *service.HTTPServer) error {
		return campaign(ctx, p.Node, roles, election, func(record service.EventRecord) {
			server.Publish(record)
			if err := c.out.Print(record, record.Text()); err != nil {
				config.Logger.Error("an event could not be printed", "error", err)
			}
		})
	}})
}

// campaign campaigns for roles until ctx ends or all elections have stopped.
// The node's Close shuts down.
func campaign(ctx context.Context, node *tenure.Node, roles []tenure.Role, config tenure.ElectionConfig, report func(service.EventRecord)) error {
	ended := make(chan error, len(roles)) // each election stops at most once
	refused := make(chan error, 1)
	for _, role := range roles {
		election, err := node.ElectionWith(role, config)
		if err != nil {
			return err
		}
		follow := followFailure(ended, refused)
		election.OnEvent(func(event tenure.Event) {
			report(service.NewEventRecord(node, event))
			follow(event)
		})
		if err := election.Start(context.Background()); err != nil {
			return err
		}
	}
	var failed error // the first of the roles for which the node no longer campaigns
	for range roles {
		select {
		case failure := <-ended:
			if failed == nil && failure != nil && !errors.Is(failure, tenure.ErrHeld) {
				failed = failure
			}
		case err := <-refused:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	return failed
}

// followFailure returns a callback. When the election stops, it sends the failure of the
// last attempt or term to ended, and to refused if retrying does not help.
func followFailure(ended, refused chan<- error) func(tenure.Event) {
	var failure error // callbacks are called one at a time
	return func(event tenure.Event) {
		switch event.Kind {
		case tenure.EventAcquired, tenure.EventReleased:
			failure = nil
		case tenure.EventLost:
			failure = lostRole(event.Role, event.Err)
		case tenure.EventAcquireFailed:
			if errors.Is(event.Err, tenure.ErrNotActive) {
				return // the node waits for the minimum of nodes, or drains
			}
			failure = event.Err
			if errors.Is(failure, tenure.ErrKeyMismatch) {
				select {
				case refused <- failure:
				default:
				}
			}
		case tenure.EventStopped:
			ended <- failure
		}
	}
}

// lostRole returns the error of a program that ends because it lost a role.
func lostRole(role tenure.Role, cause error) error {
	return fmt.Errorf("%s was lost: %w", role, cause)
}
