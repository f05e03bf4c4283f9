package run

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/logqueue"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/service"
)

const agentLong = `Hold two connections to the database for all nodes of this host. The nodes campaign
through a Unix socket: with tenure run --agent PATH, or with package agent in Go.

Use an agent if more processes campaign than the database has connections for. A role
is released within milliseconds when its process dies. When the agent stops or cannot
reach the database, the terms of all its nodes end before other hosts take over.

The directory of the socket and those above it must not be writable by other users,
apart from sticky ones such as /tmp. Nodes must run as the same user as the agent. On
SIGTERM or SIGINT the nodes lose their sessions; when their work has ended, the agent
exits 0. Nodes reconnect to the next agent at the path. Agents need Linux.`

// agentSettle is the default of --settle, as for nodes with commands. The agent must not
// have less.
const agentSettle = 200 * time.Millisecond

// agentCommand runs an agent.
type agentCommand struct {
	node   service.NodeFlags
	socket string
}

// NewAgent returns the command "tenure agent".
func NewAgent() *cobra.Command {
	c := &agentCommand{}
	cmd := &cobra.Command{
		Use:     "agent --socket PATH",
		Short:   "Hold the database connections for all nodes of a host",
		Long:    agentLong,
		Example: "  tenure agent --dsn postgres://app@db/app --socket /run/tenure/agent.sock\n  tenure run --agent /run/tenure/agent.sock --role billing",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.node.Register(cmd.Flags(), "info")
	cmd.Flags().StringVar(&c.socket, "socket", "", "`path` of the socket, in a directory that no other user can write to")
	cmd.Flags().Lookup("stop-timeout").Hidden = true // nodes have their own
	cmd.Flags().Lookup("settle").Usage = service.SettleUsage("200ms")
	cmd.Flags().Lookup("lease").Usage = "how long the database reserves the roles of a silent agent; default 10s"
	return cmd
}

func (c *agentCommand) run(cmd *cobra.Command) error {
	if c.socket == "" {
		return console.Usage("--socket is missing: it names the path where nodes of this host connect")
	}
	config, err := c.node.Config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("settle") {
		config.Settle = agentSettle
	}
	backend, closeBackend, err := c.node.OpenBackend(cmd.Context())
	if err != nil {
		return err
	}
	defer closeBackend()
	log, queue := logqueue.New(config.Logger) // also the function below must not block
	defer queue.Flush(context.Background(), clocks.System())
	return server.Run(cmd.Context(), server.Config{
		Backend: backend, Path: c.socket, Name: config.Name, Logger: log,
		Timing: tenure.Timing{
			Lease: config.Lease, RefreshInterval: config.RefreshInterval, Margin: config.Margin,
			CheckInterval: config.CheckInterval, LockTimeout: config.LockTimeout, FenceTimeout: config.FenceTimeout,
			Settle: config.Settle, FailoverWait: config.FailoverWait, SynchronousFailover: config.SynchronousFailover,
		},
	}, func() { log.Info("the agent is ready", "socket", c.socket) })
}
