package connect

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// CompletionTimeout limits queries for completion, since a user is waiting.
const CompletionTimeout = time.Second

// Ask queries the database of the incomplete command line. If it fails, it offers
// nothing, since the user cannot act on an error here.
func Ask(cmd *cobra.Command, begun string, query func(context.Context, Backend) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	if err := settings.Configure(cmd); err != nil {
		return nil, nothing
	}
	database := databaseFlagsOf(cmd.Flags())
	backend, err := database.Open(ctx, true)
	if err != nil {
		return nil, nothing
	}
	defer backend.Close()
	answers, err := query(ctx, backend)
	if err != nil {
		return nil, nothing
	}
	var fitting []cobra.Completion
	for _, answer := range answers {
		if name, _, _ := strings.Cut(answer, "\t"); strings.HasPrefix(name, begun) && isShellWord(name) {
			fitting = append(fitting, answer)
		}
	}
	return fitting, cobra.ShellCompDirectiveNoFileComp
}

// isShellWord reports whether every shell takes a name literally without
// quotes. Other names are not offered: bash inserts completions without quotes
// and evaluates them, so a role named x$(COMMAND) would run the command.
func isShellWord(name string) bool {
	if name == "" || strings.ContainsRune("-@%+", rune(name[0])) || !printable.IsText(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._:/@%+-", r)
	})
}

// databaseFlagsOf returns the database flags of any command.
func databaseFlagsOf(flags *pflag.FlagSet) *DatabaseFlags {
	text := func(name string) string { return flags.Lookup(name).Value.String() }
	return &DatabaseFlags{Flags: flags, dsn: text("dsn"), passwordCommand: text("password-command"), local: text("local") == "true", Schema: text("schema"), Prefix: text("prefix")}
}
