package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/audit"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/roster"
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
	if err := c.database.RequireRegistry("this command"); err != nil {
		return err
	}
	database, err := c.database.Work(cmd.Context())
	if err != nil {
		return err
	}
	defer database.Close()
	if !c.dead {
		return c.forget(cmd, database, args[0])
	}
	found, err := roster.Read(cmd.Context(), database.Backend)
	if err != nil {
		return err
	}
	gone, err := database.ForgetDead(cmd.Context(), c.olderThan.Value)
	if err != nil {
		return err
	}
	for _, id := range gone {
		recordForgotten(cmd, database, id, nameOf(found.Members, id))
	}
	noun := "nodes"
	if len(gone) == 1 {
		noun = "node"
	}
	return c.out.Print(ForgottenRecord{append([]uuid.UUID{}, gone...)}, fmt.Sprintf("%d dead %s forgotten", len(gone), noun))
}

// nameOf returns the name of a node, or its id if it is not known.
func nameOf(members []tenure.Member, id uuid.UUID) string {
	for _, m := range members {
		if m.ID == id {
			return m.Name
		}
	}
	return id.String()
}

// recordForgotten records who removed a node. Removed it is in any case, so that a failure
// is only a warning.
func recordForgotten(cmd *cobra.Command, database *connect.WorkDatabase, id uuid.UUID, name string) {
	err := audit.Record(cmd.Context(), database.Backend, database.Pool, audit.Entry{
		By: connect.WhoAsks(), Kind: "node", Name: name, Action: "forget", Detail: id.String(),
	})
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "tenure: warning: %s was forgotten, but not recorded in the audit: %s\n", nodeLabel(name, id), console.OneLine(err))
	}
}

// forget removes one node.
func (c *nodeForgetCommand) forget(cmd *cobra.Command, database *connect.WorkDatabase, text string) error {
	ctx := cmd.Context()
	found, err := roster.Read(ctx, database.Backend)
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
	if _, err := database.MarkDead(ctx, 0); err != nil { // it may be silent without having been marked dead
		return err
	}
	if err := database.Forget(ctx, m.ID); err != nil {
		if errors.Is(err, tenure.ErrUnknownNode) {
			return console.Usage("%s has rejoined or was already forgotten: see tenure node list", nodeLabel(m.Name, m.ID))
		}
		return err
	}
	recordForgotten(cmd, database, m.ID, m.Name)
	return c.out.Print(ForgottenRecord{[]uuid.UUID{m.ID}}, nodeLabel(m.Name, m.ID)+" is forgotten")
}
