package connect

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
	"github.com/exactly-one/tenure/internal/printable"
)

// CompletionTimeout bounds what completion asks of a database: a person waits.
const CompletionTimeout = time.Second

// Ask asks the database that a command line names so far. If that fails, nothing
// is offered: a person who completes a line cannot do anything about it.
func Ask(cmd *cobra.Command, begun string, question func(context.Context, Backend) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
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
	answers, err := question(ctx, backend)
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

// isShellWord reports whether a name means itself in every shell without quotes.
// Other names are not offered: bash evaluates what it inserts, without quotes, so a
// role named x$(COMMAND) would run the command.
func isShellWord(name string) bool {
	if name == "" || strings.ContainsRune("-@%+", rune(name[0])) || !printable.IsText(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._:/@%+-", r)
	})
}

// databaseFlagsOf are the database flags of a command, whichever it is.
func databaseFlagsOf(flags *pflag.FlagSet) *DatabaseFlags {
	text := func(name string) string { return flags.Lookup(name).Value.String() }
	return &DatabaseFlags{Flags: flags, dsn: text("dsn"), local: text("local") == "true", Schema: text("schema"), Prefix: text("prefix")}
}
