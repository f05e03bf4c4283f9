package console

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/nearest"
)

// NoArgs rejects arguments of a command with flags only.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// UnknownCommand returns the error for a word that is no command of a group.
func UnknownCommand(group *cobra.Command, word string) error {
	where := ""
	if group.HasParent() {
		where = " in " + group.CommandPath()
	}
	var names []string
	for _, known := range group.Commands() {
		if known.IsAvailableCommand() {
			names = append(names, known.Name())
		}
	}
	if meant := nearest.Of(word, names); meant != "" {
		return Usage("there is no command %q%s; did you mean %q?", word, where, group.CommandPath()+" "+meant)
	}
	return Usage("there is no command %q%s; see %s --help", word, where, group.CommandPath())
}

// MissingCommand returns the error for a flag of a group, which has none: it belongs to one
// of the group's commands.
func MissingCommand(group *cobra.Command, err error) error {
	var names []string
	for _, known := range group.Commands() {
		if known.IsAvailableCommand() && known.Name() != "help" && known.Name() != "completion" {
			names = append(names, group.CommandPath()+" "+known.Name())
		}
	}
	if len(names) == 1 {
		return Usage("%w; write %s before the flag", err, names[0])
	}
	return Usage("%w; write a command before the flag, such as %s; see %s --help", err, names[0], group.CommandPath())
}

// Group returns a command that only contains others.
func Group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}
