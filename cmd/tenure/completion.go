package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completions says how the values of flags are completed, by the flag's name.
var completions = map[string]cobra.CompletionFunc{
	"role":       completeRoles,
	"to":         completeNodes,
	"output":     cobra.FixedCompletions([]string{string(formatText), string(formatJSON)}, cobra.ShellCompDirectiveNoFileComp),
	"log-level":  cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
	"log-format": cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp),
	"days":       cobra.FixedCompletions(dayKinds, cobra.ShellCompDirectiveNoFileComp),
	"restart": cobra.FixedCompletions(
		[]string{string(restartNever), string(restartOnFailure), string(restartAlways)}, cobra.ShellCompDirectiveNoFileComp),
	configFlag: cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
}

// complete gives the flags of a command, and of those below it, their completions.
// What migrate down and processor rewind go to is no node.
func complete(cmd *cobra.Command) {
	register := func(flag *pflag.Flag) {
		if completion := completions[flag.Name]; completion != nil && (flag.Name != "to" || flag.Value.Type() == "string") {
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, completion); err != nil {
				panic(err) // the flag is there, and each has one completion
			}
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(register)
	cmd.PersistentFlags().VisitAll(register)
	for _, below := range cmd.Commands() {
		complete(below)
	}
}
