package cluster

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// oneNode requires one argument: a node.
func oneNode(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return console.Usage("name the node: by its id, its name, or the beginning of its id")
	case len(args) > 1:
		return console.Usage("%s takes one node, but got %d", cmd.CommandPath(), len(args))
	case args[0] == "":
		return console.Usage("the name of the node is empty")
	}
	return nil
}

// findMember finds the named node.
func findMember(found *roster.Roster, text string, fits func(tenure.Member) bool) (tenure.Member, error) {
	m, err := found.Find(text, fits)
	var ambiguous *roster.AmbiguousError
	if errors.As(err, &ambiguous) {
		err = console.Usage("%w", err)
	}
	return m, err
}
