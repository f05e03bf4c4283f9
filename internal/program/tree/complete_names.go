package tree

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
)

// CompleteRoles offers all roles with a leader, now or earlier.
func CompleteRoles(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return connect.Ask(cmd, begun, func(ctx context.Context, backend connect.Backend) ([]cobra.Completion, error) {
		holders, err := backend.Holders(ctx)
		var roles []cobra.Completion
		for _, holder := range holders {
			what := "vacant"
			if holder.Leader != nil {
				what = fmt.Sprintf("led by %s, term %d", console.Flatten(holder.Leader.NodeName), holder.Leader.Term)
			}
			roles = append(roles, cobra.CompletionWithDesc(holder.Role, what))
		}
		return roles, err
	})
}

// completeNodes offers the live nodes.
func completeNodes(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return connect.Ask(cmd, begun, func(ctx context.Context, backend connect.Backend) ([]cobra.Completion, error) {
		nodes, err := backend.Nodes(ctx)
		var names []cobra.Completion
		for _, node := range nodes {
			names = append(names, cobra.CompletionWithDesc(node.Name, node.ID.String()))
		}
		return names, err
	})
}
