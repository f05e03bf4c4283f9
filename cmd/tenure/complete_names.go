package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// completeRoles offers the roles that were ever led.
func completeRoles(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, begun, func(ctx context.Context, backend backend) ([]cobra.Completion, error) {
		holders, err := holdersOf(ctx, backend, nil)
		var roles []cobra.Completion
		for _, holder := range holders {
			what := "vacant"
			if holder.Leader != nil {
				what = fmt.Sprintf("led by %s, term %d", flatten(holder.Leader.NodeName), holder.Leader.Term)
			}
			roles = append(roles, cobra.CompletionWithDesc(holder.Role, what))
		}
		return roles, err
	})
}

// completeNodes offers the living nodes.
func completeNodes(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, begun, func(ctx context.Context, backend backend) ([]cobra.Completion, error) {
		nodes, err := backend.Nodes(ctx)
		var names []cobra.Completion
		for _, node := range nodes {
			names = append(names, cobra.CompletionWithDesc(node.Name, node.ID.String()))
		}
		return names, err
	})
}
