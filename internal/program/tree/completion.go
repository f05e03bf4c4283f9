package tree

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// completions maps flags to the completion of their values.
var completions = map[string]cobra.CompletionFunc{
	"role":              CompleteRoles,
	"to":                completeNodes,
	"output":            cobra.FixedCompletions([]string{string(console.FormatText), string(console.FormatWide), string(console.FormatJSON)}, cobra.ShellCompDirectiveNoFileComp),
	"color":             cobra.FixedCompletions([]string{string(console.ColorAuto), string(console.ColorAlways), string(console.ColorNever)}, cobra.ShellCompDirectiveNoFileComp),
	"log-level":         cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
	"log-format":        cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp),
	settings.ConfigFlag: cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
}

// complete registers the completions of a command and its subcommands, also for some more
// flags. The --to of migrate down and of processor rewind is not a node.
func complete(cmd *cobra.Command, more map[string]cobra.CompletionFunc) {
	register := func(flag *pflag.Flag) {
		completion := completions[flag.Name]
		if own := more[flag.Name]; own != nil {
			completion = own
		}
		if completion != nil && (flag.Name != "to" || flag.Value.Type() == "string") {
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, completion); err != nil {
				panic(err) // the flag exists, and each has one completion
			}
		}
	}
	cmd.Flags().VisitAll(register) // those of its parents are not among them yet
	cmd.PersistentFlags().VisitAll(register)
	for _, below := range cmd.Commands() {
		complete(below, more)
	}
}
