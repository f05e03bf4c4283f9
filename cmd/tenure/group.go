package main

import (
	"github.com/spf13/cobra"
)

// noArgs refuses arguments of a command that takes flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// group is a command that only holds others.
func group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q in %s; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}
