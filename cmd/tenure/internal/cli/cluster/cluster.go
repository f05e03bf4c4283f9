// Package cluster implements the commands on the nodes of a cluster.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/postgres"
)

const clusterLong = `Show the nodes and leaders of a cluster.`

const clusterStatusLong = `Show the nodes of the cluster, including dead ones, and the leaders.

The first line names the database and schema of the cluster, after its display name
if it has one.

ID is the beginning of the id, long enough to be unique. ROLES lists the node roles, and
the roles that the node leads, marked with a star. STATUS is "joining", "active",
"draining", "drained" (with nothing left to do) or "dead". A node that has been silent
for longer than its lease is shown as dead, even if no other node has noticed. Dead nodes
come first; last are "replaced" ones, whose name a later node has. LOAD is
the mean of CPU and memory usage. Shared roles that no live node may lead are listed
with the reason.

With --watch the command shows them again after every change, until a signal. On a
terminal it redraws them in place; elsewhere it prints them again, with -o json as one
object per line. Changes of load and uptime alone count only on a terminal.

The command only reads. The exit code is 0 whatever the status of the nodes.`

// New returns the command "tenure cluster".
func New(out *console.Output) *cobra.Command {
	return console.Group("cluster", "Show the nodes and leaders of the cluster", clusterLong, newClusterStatus(out))
}

// clusterStatusCommand shows the nodes of a cluster.
type clusterStatusCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	log      console.LogFlags
	name     string
	watch    bool
	check    flagvalue.Duration
}

func newClusterStatus(out *console.Output) *cobra.Command {
	c := &clusterStatusCommand{out: out, check: flagvalue.Duration{Value: time.Second}}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the nodes of the cluster and who leads",
		Long:    clusterStatusLong,
		Example: "  tenure cluster status\n  tenure cluster status --watch -o json",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.database.Register(flags)
	c.log.Register(flags, "warn")
	flags.StringVar(&c.name, "cluster-name", service.DefaultClusterName, "the cluster's display name")
	flags.BoolVar(&c.watch, "watch", false, "show the nodes again after every change, until a signal")
	flags.Var(&c.check, "check-interval", "with --watch: time between polls if no notification arrives")
	return cmd
}

func (c *clusterStatusCommand) run(cmd *cobra.Command) error {
	logger, err := c.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	backend, err := c.database.Registry(cmd.Context())
	if err != nil {
		return err
	}
	defer backend.Close()
	title, err := c.title()
	if err != nil {
		return err
	}
	if c.watch {
		return c.follow(cmd.Context(), backend, title, logger)
	}
	found, err := roster.ReadAll(cmd.Context(), backend)
	if err != nil {
		return err
	}
	return c.out.PrintText(found.Record(c.name), func(page *console.Page) { fillCluster(page, found, title) })
}

// title names the cluster by its database and, if it was given one, its display name.
func (c *clusterStatusCommand) title() (string, error) {
	target, err := c.database.Target()
	if err != nil {
		return "", err
	}
	title := fmt.Sprintf("database %s, schema %s", target.Place(), c.database.Schema)
	if c.database.Prefix != postgres.DefaultPrefix {
		title += ", prefix " + c.database.Prefix
	}
	if c.name != service.DefaultClusterName {
		title = c.name + ", " + title
	}
	return title, nil
}

// follow shows the cluster until ctx ends.
func (c *clusterStatusCommand) follow(ctx context.Context, source roster.Source, title string, log *slog.Logger) error {
	screen := console.NewScreen(c.out)
	last := ""
	return roster.Follow(ctx, source, c.check.Value, log, func(found *roster.Roster) (bool, error) {
		if screen != nil {
			return true, screen.Draw(func(page *console.Page) { fillCluster(page, found, title) })
		}
		state := Settled(found.Record(c.name))
		if state == last {
			return true, nil
		}
		first := last == ""
		last = state
		return true, c.out.PrintText(found.Record(c.name), func(page *console.Page) {
			if !first {
				page.Line("")
			}
			fillCluster(page, found, title)
		})
	})
}

// Settled returns a text of a cluster without its constantly changing values: it changes
// with everything else.
func Settled(cluster record.Cluster) string {
	for i := range cluster.Nodes {
		node := &cluster.Nodes[i]
		node.UptimeSeconds, node.SilentSeconds, node.LastHeartbeat = 0, 0, record.Time{}
		node.CPUUsage, node.MemoryUsage, node.Load = 0, 0, 0
		node.Connections, node.Jobs, node.InFlight = 0, 0, 0
	}
	for _, role := range cluster.Leaders {
		role.Leader.LeaseUntil, role.Leader.ValidSeconds = record.Time{}, 0
	}
	return console.Encode(cluster)
}
