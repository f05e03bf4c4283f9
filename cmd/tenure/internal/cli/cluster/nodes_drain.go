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
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
	"github.com/exactly-one/tenure/cmd/tenure/internal/roster"
	"github.com/exactly-one/tenure/postgres"
)

const nodeDrainLong = `Take a node out of service, from any machine, and follow it to the end: it takes no
new work, lets work in flight end, gives up the roles that it leads, and lives on.
tenure node undrain takes it back.

With --to the roles go to that node, else to whoever stands for them. The only
node in service is refused, exit code 2, unless --force is given: nobody would
lead then. If it is not drained after --timeout, the exit code is 1, and what is
left is told; the node goes on draining. It is also 1 if the node dies meanwhile,
or if somebody takes it back. Any number of people may drain the same node.

With -o json each step is one object on a line of its own.`

const nodeUndrainLong = `Take a node that drains, or is drained, back into service: it stands for its roles
again. Roles that others lead by now stay with them.`

// nodeDrainCommand takes a node out of service.
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
		Short:   "Take a node out of service and follow it to the end",
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
	cmd.Flags().StringVar(&c.to, "to", "", "the node to lead next: its id or its name")
	cmd.Flags().BoolVar(&c.force, "force", false, "also if no other node is in service")
	cmd.Flags().BoolVar(&c.noWait, "no-wait", false, "ask, and do not wait for the end")
	cmd.Flags().Var(&c.timeout, "timeout", "how long to follow")
	return cmd
}

// drainRecord is a step of a drain as it is printed.
type drainRecord struct {
	Time     console.Timestamp `json:"time"`
	Event    string            `json:"event"`
	Node     uuid.UUID         `json:"node"`
	NodeName string            `json:"node_name"`
	Status   tenure.NodeStatus `json:"status"`
	Leads    int               `json:"leads"`     // roles
	InFlight int               `json:"in_flight"` // pieces of work, as of the last heartbeat
}

// The events of a drain.
const (
	drainAsked    = "asked"    // without waiting
	DrainProgress = "progress" // it goes on
	DrainDone     = "drained"  // at its end
	drainLeft     = "left"     // at its end: the node has left
	drainUndone   = "undrained"
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
			return console.Usage("--to names %s itself", nodeLabel(m.Name, m.ID))
		case successor.Status != tenure.StatusActive:
			return console.Usage("--to names %s, which is %s and takes no roles", nodeLabel(successor.Name, successor.ID), successor.Status)
		}
		target = successor.ID
	}
	if c.noWait {
		err := backend.Request(ctx, tenure.Request{Kind: tenure.RequestDrain, Node: m.ID, Target: target, Force: c.force, By: connect.WhoAsks()})
		if err != nil {
			return c.explain(m, err)
		}
		return tellDrain(c.out, m, drainAsked, cluster.DrainProgress{Status: m.Status, Leads: len(found.Leads(m.ID)), InFlight: m.InFlight})
	}
	return c.follow(ctx, backend, m, target)
}

// follow drains the node and tells each step.
func (c *nodeDrainCommand) follow(ctx context.Context, backend *postgres.Backend, m tenure.Member, target uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout.Value)
	defer cancel()
	var last cluster.DrainProgress
	var printing error
	err := cluster.DrainNode(ctx, backend, cluster.NodeID(m.ID), cluster.DrainOptions{
		Force: c.force, Target: cluster.NodeID(target), By: connect.WhoAsks(),
		Progress: func(progress cluster.DrainProgress) {
			last = progress
			if !progress.Drained && printing == nil {
				printing = tellDrain(c.out, m, DrainProgress, progress)
			}
		},
	})
	switch {
	case printing != nil:
		return printing
	case err == nil && last.Drained:
		return tellDrain(c.out, m, DrainDone, last)
	case err == nil:
		return tellDrain(c.out, m, drainLeft, last)
	case errors.Is(err, context.DeadlineExceeded):
		return console.NotAcquired("%s is not drained after %v: %v; it goes on draining", nodeLabel(m.Name, m.ID), c.timeout.Value, last)
	case ctx.Err() != nil:
		return console.NotAcquired("interrupted; %s goes on draining: %v", nodeLabel(m.Name, m.ID), last)
	}
	return c.explain(m, err)
}

// explain words an error for the one who drains a node.
func (c *nodeDrainCommand) explain(m tenure.Member, err error) error {
	switch label := nodeLabel(m.Name, m.ID); {
	case errors.Is(err, tenure.ErrLastNode):
		return console.Usage("%s is the only node in service, so nobody would lead: start another one first, or give --force", label)
	case errors.Is(err, cluster.ErrNodeDied):
		return console.NotAcquired("%s died while it drained; the roles that it led move on", label)
	case errors.Is(err, tenure.ErrDrainCanceled):
		return console.NotAcquired("%s was taken back into service before it was drained", label)
	}
	return err
}

func tellDrain(out *console.Output, m tenure.Member, event string, progress cluster.DrainProgress) error {
	now := time.Now()
	record := drainRecord{
		Time: console.Timestamp(now), Event: event, Node: m.ID, NodeName: m.Name,
		Status: progress.Status, Leads: progress.Leads, InFlight: progress.InFlight,
	}
	left := fmt.Sprintf("%s, leads %d, in flight %d", progress.Status, progress.Leads, progress.InFlight)
	what := map[string]string{
		drainAsked: "is asked to drain", DrainProgress: left, DrainDone: "drained", drainLeft: "has left", drainUndone: "in service",
	}[event]
	return out.Print(record, fmt.Sprintf("%s  %s  %s", console.ShortTime(now), nodeLabel(m.Name, m.ID), what))
}

// findAlive finds the node that a person named, which must not be dead.
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
		Use: "undrain NODE", Short: "Take a draining node back into service", Long: nodeUndrainLong, Args: oneNode,
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
	cmd.Flags().Var(&timeout, "timeout", "how long to wait until it is back")
	return cmd
}

func undrain(ctx context.Context, out *console.Output, backend *postgres.Backend, found *roster.Roster, text string, timeout time.Duration) error {
	m, err := findAlive(found, text)
	if err != nil {
		return err
	}
	err = cluster.UndrainNode(ctx, backend, cluster.NodeID(m.ID), connect.WhoAsks())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return console.NotAcquired("%s is not back in service after %v", nodeLabel(m.Name, m.ID), timeout)
	case errors.Is(err, tenure.ErrUnknownNode):
		return console.NotAcquired("%s died or left before it was back in service", nodeLabel(m.Name, m.ID))
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
	return tellDrain(out, m, drainUndone, cluster.DrainProgress{Status: back.Status, Leads: len(found.Leads(m.ID)), InFlight: back.InFlight})
}
