package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/roster"
	"github.com/exactly-one/tenure/postgres"
)

const nodeForgetLong = `Remove a dead node from the registry, or with --dead all that died longer ago
than --older-than. Nodes that join do so by themselves after a day.

A node that lives is refused with exit code 2: stop it, or drain it. The numbers
of terms stay as they are.`

// nodeForgetCommand removes dead nodes.
type nodeForgetCommand struct {
	out       *output
	database  databaseFlags
	dead      bool
	olderThan duration
}

func newNodeForget(out *output) *cobra.Command {
	c := &nodeForgetCommand{out: out, olderThan: duration{value: 24 * time.Hour, allowZero: true}}
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
			return usage("name a node or give --dead, not both")
		case c.dead:
			return nil
		case cmd.Flags().Changed("older-than"):
			return usage("--older-than is for --dead, which is not given")
		}
		return oneNode(cmd, args)
	}
	c.database.register(cmd.Flags())
	cmd.Flags().BoolVar(&c.dead, "dead", false, "all dead nodes that were heard of last longer ago than --older-than")
	cmd.Flags().Var(&c.olderThan, "older-than", "with --dead: how long ago")
	return cmd
}

// forgottenRecord says which nodes were removed.
type forgottenRecord struct {
	Forgotten []uuid.UUID `json:"forgotten"`
}

func (c *nodeForgetCommand) run(cmd *cobra.Command, args []string) error {
	backend, err := c.database.registry(cmd.Context())
	if err != nil {
		return err
	}
	defer backend.Close()
	if !c.dead {
		return c.forget(cmd.Context(), backend, args[0])
	}
	gone, err := backend.ForgetDead(cmd.Context(), c.olderThan.value)
	if err != nil {
		return err
	}
	noun := "nodes"
	if len(gone) == 1 {
		noun = "node"
	}
	return c.out.print(forgottenRecord{append([]uuid.UUID{}, gone...)}, fmt.Sprintf("%d dead %s forgotten", len(gone), noun))
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
		return usage("%s is %s, and only dead nodes are forgotten: stop it first", nodeLabel(m.Name, m.ID), m.Status)
	}
	if _, err := backend.MarkDead(ctx, 0); err != nil { // silent, and nobody was there to notice
		return err
	}
	if err := backend.Forget(ctx, m.ID); err != nil {
		if errors.Is(err, tenure.ErrUnknownNode) {
			return usage("%s came back or was forgotten by another meanwhile: see tenure node list", nodeLabel(m.Name, m.ID))
		}
		return err
	}
	return c.out.print(forgottenRecord{[]uuid.UUID{m.ID}}, nodeLabel(m.Name, m.ID)+" is forgotten")
}
