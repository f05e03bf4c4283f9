package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// completeNode offers the live nodes as the command's argument.
func completeNode(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeMember(cmd, args, begun, roster.Alive)
}

// completeDeadNode offers the dead nodes.
func completeDeadNode(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeMember(cmd, args, begun, roster.Dead)
}

// completeMember offers the matching nodes of the registry, by name if it is
// unique, else by id.
func completeMember(cmd *cobra.Command, args []string, begun string, fits func(tenure.Member) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return connect.Ask(cmd, begun, func(ctx context.Context, opened connect.Backend) ([]cobra.Completion, error) {
		source, ok := opened.(roster.Source)
		if _, isLeases := opened.(connect.Leases); isLeases || !ok {
			return nil, tenure.ErrUnsupported
		}
		found, err := roster.Read(ctx, source)
		if err != nil {
			return nil, err
		}
		var offers []cobra.Completion
		for _, m := range found.Members {
			if !fits(m) {
				continue
			}
			offers = append(offers, cobra.CompletionWithDesc(m.ID.String(), console.Flatten(m.Name+", "+statusText(m))))
			if named, err := found.Find(m.Name, fits); err == nil && named.ID == m.ID {
				offers = append(offers, cobra.CompletionWithDesc(m.Name, console.Flatten(statusText(m))))
			}
		}
		return offers, nil
	})
}
