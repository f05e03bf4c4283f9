package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
)

// completions maps flags to the completion of their values.
var completions = map[string]cobra.CompletionFunc{
	"role":       completeRoles,
	"to":         completeNodes,
	"output":     cobra.FixedCompletions([]string{string(console.FormatText), string(console.FormatWide), string(console.FormatJSON)}, cobra.ShellCompDirectiveNoFileComp),
	"color":      cobra.FixedCompletions([]string{string(console.ColorAuto), string(console.ColorAlways), string(console.ColorNever)}, cobra.ShellCompDirectiveNoFileComp),
	"log-level":  cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
	"log-format": cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp),
	"days":       cobra.FixedCompletions(roles.DayKinds, cobra.ShellCompDirectiveNoFileComp),
	"restart": cobra.FixedCompletions(
		[]string{string(lead.RestartNever), string(lead.RestartOnFailure), string(lead.RestartAlways)}, cobra.ShellCompDirectiveNoFileComp),
	settings.ConfigFlag: cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
}

// complete registers the completions of a command and its subcommands. The --to
// of migrate down and of processor rewind is not a node.
func complete(cmd *cobra.Command) {
	register := func(flag *pflag.Flag) {
		if completion := completions[flag.Name]; completion != nil && (flag.Name != "to" || flag.Value.Type() == "string") {
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, completion); err != nil {
				panic(err) // the flag exists, and each has one completion
			}
		}
	}
	cmd.Flags().VisitAll(register) // those of its parents are not among them yet
	cmd.PersistentFlags().VisitAll(register)
	for _, below := range cmd.Commands() {
		complete(below)
	}
}
