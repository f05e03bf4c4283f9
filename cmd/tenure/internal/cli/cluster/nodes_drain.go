package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/postgres"
)

const nodeDrainLong = `Drain a node, from any machine, and wait until it is drained: it refuses new work,
finishes work in flight, and releases the roles that it leads. Its process keeps
running. tenure node undrain reverses this.

With --to the roles are handed over to that node, else standbys take them over.
Draining the only active node is refused with exit code 2, unless --force is given:
its roles would have no leader. If the node is not drained after --timeout, the exit
code is 1, the output lists the remaining work, and the node keeps draining. The exit
code is also 1 if the node dies or is undrained. Several operators can drain the same
node.

With -o json each step is one object per line.`

const nodeUndrainLong = `Undrain a draining or drained node: it campaigns for its roles again. Roles that
other nodes lead by now stay with them.`

// nodeDrainCommand drains a node.
type nodeDrainCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	to       string
	force    bool
	noWait   bool
	timeout  flagvalue.Duration
}

func newNodeDrain(out *console.Output) *cobra.Command {
	c := &nodeDrainCommand{out: out, timeout: flagvalue.Duration{Value: time.Minute}}
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Short:   "Drain a node and wait until it is drained",
		Long:    nodeDrainLong,
		Example: "  tenure node drain api-1\n  tenure node drain 3f2a --to api-2 --timeout 5m",
		Args:    oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd.Context(), &c.database, func(backend *postgres.Backend, found *roster.Roster) error {
				return c.run(cmd.Context(), backend, found, args[0])
			})
		},
		ValidArgsFunction: completeNode,
	}
	c.database.Register(cmd.Flags())
	cmd.Flags().StringVar(&c.to, "to", "", "hand the roles over to this `node`: its id or its name")
	cmd.Flags().BoolVar(&c.force, "force", false, "drain the node even if no other node is active")
	cmd.Flags().BoolVar(&c.noWait, "no-wait", false, "request the drain without waiting for it")
	cmd.Flags().Var(&c.timeout, "timeout", "how long to wait")
	return cmd
}

// drainRecord is a step of a drain as printed.
type drainRecord struct {
	Time     console.Timestamp `json:"time"`
	Event    string            `json:"event"`
	Node     uuid.UUID         `json:"node"`
	NodeName string            `json:"node_name"`
	Status   tenure.NodeStatus `json:"status"`
	Leads    int               `json:"led_roles"` // number of roles
	InFlight int               `json:"in_flight"` // units of work, as of the latest heartbeat
}

// The events of a drain.
const (
	drainRequested = "asked"    // requested without waiting
	DrainProgress  = "progress" // the drain continues
	DrainDone      = "drained"  // final: drained
	drainLeft      = "left"     // final: the node has left
	drainUndone    = "undrained"
)

func (c *nodeDrainCommand) run(ctx context.Context, backend *postgres.Backend, found *roster.Roster, text string) error {
	m, err := findAlive(found, text)
	if err != nil {
		return err
	}
	var target uuid.UUID
	if c.to != "" {
		successor, err := findAlive(found, c.to)
		switch {
		case err != nil:
			return err
		case successor.ID == m.ID:
			return console.Usage("--to is %s itself", nodeLabel(m.Name, m.ID))
		case successor.Status != tenure.StatusActive:
			return console.Usage("--to is %s, which is %s and accepts no roles", nodeLabel(successor.Name, successor.ID), successor.Status)
		}
		target = successor.ID
	}
	if c.noWait {
		err := backend.Request(ctx, tenure.Request{Kind: tenure.RequestDrain, Node: m.ID, Target: target, Force: c.force, By: connect.WhoAsks()})
		if err != nil {
			return c.explain(m, err)
		}
		return printDrain(c.out, m, drainRequested, cluster.DrainProgress{Status: m.Status, Leads: len(found.Leads(m.ID)), InFlight: m.InFlight})
	}
	return c.follow(ctx, backend, m, target)
}

// follow drains the node and prints each step.
func (c *nodeDrainCommand) follow(ctx context.Context, backend *postgres.Backend, m tenure.Member, target uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout.Value)
	defer cancel()
	var last cluster.DrainProgress
	var printing error
	err := cluster.DrainNode(ctx, backend, m.ID, cluster.DrainOptions{
		Force: c.force, Target: target, By: connect.WhoAsks(),
		Progress: func(progress cluster.DrainProgress) {
			last = progress
			if !progress.Drained && printing == nil {
				printing = printDrain(c.out, m, DrainProgress, progress)
			}
		},
	})
	switch {
	case printing != nil:
		return printing
	case err == nil && last.Drained:
		return printDrain(c.out, m, DrainDone, last)
	case err == nil:
		return printDrain(c.out, m, drainLeft, last)
	case ctx.Err() != nil && last.Status == "": // nothing was read since the request
		return console.NotAcquired("the database did not confirm in time that %s drains: see tenure node list", nodeLabel(m.Name, m.ID))
	case errors.Is(err, context.DeadlineExceeded) && last.Status == tenure.StatusActive: // an agent ignores the request
		return console.NotAcquired("%s is not drained after %v: %v; it has not begun, and begins when it next answers; stop an agent instead",
			nodeLabel(m.Name, m.ID), c.timeout.Value, last)
	case errors.Is(err, context.DeadlineExceeded):
		return console.NotAcquired("%s is not drained after %v: %v; it keeps draining", nodeLabel(m.Name, m.ID), c.timeout.Value, last)
	case ctx.Err() != nil && last.Status == tenure.StatusActive:
		return console.NotAcquired("interrupted; %s has not begun to drain, and begins when it next answers: %v", nodeLabel(m.Name, m.ID), last)
	case ctx.Err() != nil:
		return console.NotAcquired("interrupted; %s keeps draining: %v", nodeLabel(m.Name, m.ID), last)
	}
	return c.explain(m, err)
}

// explain rewords an error for the operator.
func (c *nodeDrainCommand) explain(m tenure.Member, err error) error {
	switch label := nodeLabel(m.Name, m.ID); {
	case errors.Is(err, tenure.ErrLastNode):
		return console.Usage("%s is the only active node, so its roles would have no leader: start another node first, or use --force", label)
	case errors.Is(err, cluster.ErrNodeDied):
		return console.NotAcquired("%s died while it drained; other nodes take over its roles", label)
	case errors.Is(err, tenure.ErrDrainCanceled):
		return console.NotAcquired("%s was undrained before it was drained", label)
	}
	return err
}

func printDrain(out *console.Output, m tenure.Member, event string, progress cluster.DrainProgress) error {
	now := time.Now()
	record := drainRecord{
		Time: console.Timestamp(now), Event: event, Node: m.ID, NodeName: m.Name,
		Status: progress.Status, Leads: progress.Leads, InFlight: progress.InFlight,
	}
	left := fmt.Sprintf("%s, leads %d, in flight %d", progress.Status, progress.Leads, progress.InFlight)
	what := map[string]string{
		drainRequested: "drain requested", DrainProgress: left, DrainDone: "drained", drainLeft: "has left", drainUndone: "undrained",
	}[event]
	return out.Print(record, fmt.Sprintf("%s  %s  %s", console.ShortTime(now), nodeLabel(m.Name, m.ID), what))
}

// findAlive finds the named node. It must not be dead.
func findAlive(found *roster.Roster, text string) (tenure.Member, error) {
	m, err := findMember(found, text, roster.Alive)
	if err == nil && !roster.Alive(m) {
		return m, console.Usage("%s is dead", nodeLabel(m.Name, m.ID))
	}
	return m, err
}

func newNodeUndrain(out *console.Output) *cobra.Command {
	var database connect.DatabaseFlags
	timeout := flagvalue.Duration{Value: 30 * time.Second}
	cmd := &cobra.Command{
		Use: "undrain NODE", Short: "Undrain a draining or drained node", Long: nodeUndrainLong, Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout.Value)
			defer cancel()
			return withRoster(ctx, &database, func(backend *postgres.Backend, found *roster.Roster) error {
				return undrain(ctx, out, backend, found, args[0], timeout.Value)
			})
		},
		ValidArgsFunction: completeNode,
	}
	database.Register(cmd.Flags())
	cmd.Flags().Var(&timeout, "timeout", "how long to wait until the node is undrained")
	return cmd
}

func undrain(ctx context.Context, out *console.Output, backend *postgres.Backend, found *roster.Roster, text string, timeout time.Duration) error {
	m, err := findAlive(found, text)
	if err != nil {
		return err
	}
	err = cluster.UndrainNode(ctx, backend, m.ID, connect.WhoAsks())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return console.NotAcquired("%s is not undrained after %v", nodeLabel(m.Name, m.ID), timeout)
	case errors.Is(err, tenure.ErrUnknownNode):
		return console.NotAcquired("%s died or left before it was undrained", nodeLabel(m.Name, m.ID))
	case err != nil:
		return err
	}
	if found, err = roster.Read(ctx, backend); err != nil {
		return err
	}
	back, ok := found.Member(m.ID)
	if !ok {
		back = m
	}
	return printDrain(out, m, drainUndone, cluster.DrainProgress{Status: back.Status, Leads: len(found.Leads(m.ID)), InFlight: back.InFlight})
}
