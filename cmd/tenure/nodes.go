package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
	"github.com/exactly-one/tenure/cmd/tenure/internal/roster"
)

const nodesLong = `List the nodes of the cluster, take them out of service and back, and forget dead
ones.

NODE is the id of a node, its name if only one is called so, or the beginning of
its id, of four characters at least. Of several nodes of one name the living one
is meant, and of forget the dead one.`

const nodeListLong = `List the nodes of the cluster, the dead among them. The columns are those of
tenure cluster status.`

func newNodes(out *output) *cobra.Command {
	return group("node", "List, drain and forget nodes", nodesLong,
		newNodeList(out), newNodeShow(out), newNodeDrain(out), newNodeUndrain(out), newNodeForget(out))
}

// nodesRecord is a list of nodes as it is printed.
type nodesRecord struct {
	Nodes []record.Node `json:"nodes"`
}

func newNodeList(out *output) *cobra.Command {
	var database databaseFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List the nodes of the cluster", Long: nodeListLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRoster(cmd.Context(), &database, func(found *roster.Roster) error {
				return out.printTable(nodesRecord{found.Record("").Nodes}, nodeRows(found))
			})
		},
	}
	database.register(cmd.Flags())
	return cmd
}

func newNodeShow(out *output) *cobra.Command {
	var database databaseFlags
	cmd := &cobra.Command{
		Use: "show NODE", Short: "Show all about a node", Args: oneNode,
		Example: "  tenure node show api-1\n  tenure node show 3f2a -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd.Context(), &database, func(found *roster.Roster) error {
				m, err := findMember(found, args[0], roster.Alive)
				if err != nil {
					return err
				}
				return out.printText(found.Node(m), func(int) string { return nodeText(m, found.Leads(m.ID)) })
			})
		},
		ValidArgsFunction: completeNode,
	}
	database.register(cmd.Flags())
	return cmd
}

// withRoster reads who is in the cluster.
func withRoster(ctx context.Context, database *databaseFlags, fn func(*roster.Roster) error) error {
	backend, err := database.registry(ctx)
	if err != nil {
		return err
	}
	defer backend.Close()
	found, err := roster.Read(ctx, backend)
	if err != nil {
		return err
	}
	return fn(found)
}
