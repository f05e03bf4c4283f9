package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/roster"
	"github.com/exactly-one/tenure/internal/printable"
)

// completionTimeout bounds what completion asks of a database: a person waits.
const completionTimeout = time.Second

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

// completeRoles offers the roles that were ever led.
func completeRoles(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, begun, func(ctx context.Context, backend backend) ([]cobra.Completion, error) {
		holders, err := holdersOf(ctx, backend, nil)
		var roles []cobra.Completion
		for _, holder := range holders {
			what := "vacant"
			if holder.Leader != nil {
				what = fmt.Sprintf("led by %s, term %d", flatten(holder.Leader.NodeName), holder.Leader.Term)
			}
			roles = append(roles, cobra.CompletionWithDesc(holder.Role, what))
		}
		return roles, err
	})
}

// completeNodes offers the living nodes.
func completeNodes(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, begun, func(ctx context.Context, backend backend) ([]cobra.Completion, error) {
		nodes, err := backend.Nodes(ctx)
		var names []cobra.Completion
		for _, node := range nodes {
			names = append(names, cobra.CompletionWithDesc(node.Name, node.ID.String()))
		}
		return names, err
	})
}

// completeNode offers the living nodes as the one argument of a command.
func completeNode(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeMember(cmd, args, begun, roster.Alive)
}

// completeDeadNode offers the dead ones.
func completeDeadNode(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeMember(cmd, args, begun, roster.Dead)
}

// completeMember offers the nodes of the registry that fit: by name if only one of
// them has it, else by id.
func completeMember(cmd *cobra.Command, args []string, begun string, fits func(tenure.Member) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ask(cmd, begun, func(ctx context.Context, opened backend) ([]cobra.Completion, error) {
		source, ok := opened.(roster.Source)
		if _, isLeases := opened.(leases); isLeases || !ok {
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
			offers = append(offers, cobra.CompletionWithDesc(m.ID.String(), flatten(m.Name+", "+statusText(m))))
			if named, err := found.Find(m.Name, fits); err == nil && named.ID == m.ID {
				offers = append(offers, cobra.CompletionWithDesc(m.Name, flatten(statusText(m))))
			}
		}
		return offers, nil
	})
}

// ask asks the database that a command line names so far. If that fails, nothing
// is offered: a person who completes a line cannot do anything about it.
func ask(cmd *cobra.Command, begun string, question func(context.Context, backend) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if err := configure(cmd); err != nil {
		return nil, nothing
	}
	database := databaseFlagsOf(cmd.Flags())
	backend, err := database.open(ctx, true)
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
func databaseFlagsOf(flags *pflag.FlagSet) *databaseFlags {
	text := func(name string) string { return flags.Lookup(name).Value.String() }
	return &databaseFlags{flags: flags, dsn: text("dsn"), local: text("local") == "true", schema: text("schema"), prefix: text("prefix")}
}
