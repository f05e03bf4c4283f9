package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/postgres"
)

const nodeForgetLong = `Remove a dead node from the registry. With --dead, remove all nodes that died longer
ago than --older-than. Nodes that join remove those that died more than a day ago.

A live node is refused with exit code 2: stop it, or drain it. Term numbers do not
change.`

// nodeForgetCommand removes dead nodes.
type nodeForgetCommand struct {
	out       *console.Output
	database  connect.DatabaseFlags
	dead      bool
	olderThan flagvalue.Duration
}

func newNodeForget(out *console.Output) *cobra.Command {
	c := &nodeForgetCommand{out: out, olderThan: flagvalue.Duration{Value: 24 * time.Hour, AllowZero: true}}
	cmd := &cobra.Command{
		Use:               "forget NODE | --dead",
		Short:             "Remove dead nodes from the registry",
		Long:              nodeForgetLong,
		Example:           "  tenure node forget 3f2a91c0\n  tenure node forget --dead --older-than 1h",
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
		ValidArgsFunction: completeDeadNode,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case c.dead && len(args) > 0:
			return console.Usage("name a node or use --dead, not both")
		case c.dead:
			return nil
		case cmd.Flags().Changed("older-than"):
			return console.Usage("--older-than requires --dead")
		}
		return oneNode(cmd, args)
	}
	c.database.Register(cmd.Flags())
	cmd.Flags().BoolVar(&c.dead, "dead", false, "forget all dead nodes whose last heartbeat is older than --older-than")
	cmd.Flags().Var(&c.olderThan, "older-than", "with --dead: minimum age of the last heartbeat")
	return cmd
}

// ForgottenRecord lists the removed nodes.
type ForgottenRecord struct {
	Forgotten []uuid.UUID `json:"forgotten"`
}

func (c *nodeForgetCommand) run(cmd *cobra.Command, args []string) error {
	backend, err := c.database.Registry(cmd.Context())
	if err != nil {
		return err
	}
	defer backend.Close()
	if !c.dead {
		return c.forget(cmd.Context(), backend, args[0])
	}
	gone, err := backend.ForgetDead(cmd.Context(), c.olderThan.Value)
	if err != nil {
		return err
	}
	noun := "nodes"
	if len(gone) == 1 {
		noun = "node"
	}
	return c.out.Print(ForgottenRecord{append([]uuid.UUID{}, gone...)}, fmt.Sprintf("%d dead %s forgotten", len(gone), noun))
}

// forget removes one node.
func (c *nodeForgetCommand) forget(ctx context.Context, backend *postgres.Backend, text string) error {
	found, err := roster.Read(ctx, backend)
	if err != nil {
		return err
	}
	m, err := findMember(found, text, roster.Dead)
	if err != nil {
		return err
	}
	if roster.Alive(m) {
		return console.Usage("%s is %s, and only dead nodes can be forgotten: stop it first", nodeLabel(m.Name, m.ID), m.Status)
	}
	if _, err := backend.MarkDead(ctx, 0); err != nil { // it may be silent without having been marked dead
		return err
	}
	if err := backend.Forget(ctx, m.ID); err != nil {
		if errors.Is(err, tenure.ErrUnknownNode) {
			return console.Usage("%s has rejoined or was already forgotten: see tenure node list", nodeLabel(m.Name, m.ID))
		}
		return err
	}
	return c.out.Print(ForgottenRecord{[]uuid.UUID{m.ID}}, nodeLabel(m.Name, m.ID)+" is forgotten")
}
