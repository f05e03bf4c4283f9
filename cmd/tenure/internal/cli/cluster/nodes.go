package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/postgres"
)

const nodesLong = `List the nodes of the cluster, drain and undrain them, and forget dead ones.

NODE is the id of a node, its name if the name is unique, or the beginning of its
id, at least four characters. If several nodes have the name, a live one is
preferred; for forget, a dead one.`

const nodeListLong = `List the nodes of the cluster, including dead ones. The columns are those of
tenure cluster status.`

// NewNodes returns the command "tenure node".
func NewNodes(out *console.Output) *cobra.Command {
	return console.Group("node", "List, drain and forget nodes", nodesLong,
		newNodeList(out), newNodeShow(out), newNodeDrain(out), newNodeUndrain(out), newNodeForget(out))
}

// NodesRecord is a list of nodes as printed.
type NodesRecord struct {
	Nodes []record.Node `json:"nodes"`
}

func newNodeList(out *console.Output) *cobra.Command {
	var database connect.DatabaseFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List the nodes of the cluster", Long: nodeListLong, Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRoster(cmd.Context(), &database, func(_ *postgres.Backend, found *roster.Roster) error {
				return out.PrintTable(NodesRecord{found.Record("").Nodes}, nodeRows(found), omittedOfNodes...)
			})
		},
	}
	database.Register(cmd.Flags())
	return cmd
}

func newNodeShow(out *console.Output) *cobra.Command {
	var database connect.DatabaseFlags
	cmd := &cobra.Command{
		Use: "show NODE", Short: "Show the details of a node", Args: oneNode,
		Example: "  tenure node show api-1\n  tenure node show 3f2a -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd.Context(), &database, func(_ *postgres.Backend, found *roster.Roster) error {
				m, err := findMember(found, args[0], roster.Alive)
				if err != nil {
					return err
				}
				return out.PrintText(found.Node(m), func(page *console.Page) { page.Table(nodeDetails(m, found.Leads(m.ID))) })
			})
		},
		ValidArgsFunction: completeNode,
	}
	database.Register(cmd.Flags())
	return cmd
}

// withRoster reads the nodes and leaders.
func withRoster(ctx context.Context, database *connect.DatabaseFlags, fn func(*postgres.Backend, *roster.Roster) error) error {
	backend, err := database.Registry(ctx)
	if err != nil {
		return err
	}
	defer backend.Close()
	found, err := roster.Read(ctx, backend)
	if err != nil {
		return err
	}
	return fn(backend, found)
}
