// Package tree contains the common parts of the programs' trees of commands: the flags of
// every command, help, completion, manual pages, the version, and the check of a
// configuration.
package tree

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/program/version"
)

// New returns the root of a tree without commands.
func New(name, short, long string, out *console.Output) *cobra.Command {
	var configuration settings.Configuration
	root := &cobra.Command{
		Use:           name,
		Short:         short,
		Long:          long,
		Version:       version.Read().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			out.Writer = cmd.OutOrStdout()
			return settings.Configure(cmd)
		},
	}
	root.PersistentFlags().VarP(&out.Format, "output", "o", "how to print: text, wide (tables with all columns on a terminal) or json")
	root.PersistentFlags().Var(&out.Color, "color", "color the states in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
	configuration.Register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 { // the flag is that of a command with a typo
			return console.UnknownCommand(cmd, words[0])
		} else if cmd.HasSubCommands() {
			return console.MissingCommand(cmd, err)
		}
		return console.Usage("%w", err)
	})
	return root
}

// Complete completes a tree after all its commands have been added: descriptions,
// completions of values, also for some more flags, and the help.
func Complete(root *cobra.Command, more map[string]cobra.CompletionFunc) {
	complete(root, more)
	describe(root)
	refuseUnknownHelp(root)
}

// refuseUnknownHelp makes "help" refuse unknown commands.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it was just added
	root.RemoveCommand(help)                  // until Execute adds it: it is in no list of commands
	show := help.Run
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if group, rest, err := root.Find(args); err == nil && len(rest) > 0 && group.HasSubCommands() {
			return console.UnknownCommand(group, rest[0])
		}
		show(cmd, args)
		return nil
	}
}
