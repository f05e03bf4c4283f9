package cli

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/docpage"
)

// literalWord is a word of help texts that a page shows as code.
var literalWord = regexp.MustCompile(`(^|[\s(])(--[a-z][a-z0-9-]*|TENURE_[A-Z_]+|PG[A-Z]+|DATABASE_URL|SOURCE_DATE_EPOCH|\[\[[a-z]+\]\]|[a-z]+_[a-z_]+[a-z]|[a-z-]+:PATH|\*\.\S+[a-z])`)

// Each command has a section with its help text, examples and flags.
func TestReferenceListsEveryCommand(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	global, database := map[string]bool{}, map[string]bool{}
	walk(wholeTree(), func(cmd *cobra.Command) {
		if !cmd.HasParent() {
			page.WriteString("## Flags of every command\n\n")
			cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { global[f.Name] = true })
			page.WriteString(flagTable(cmd.PersistentFlags(), nil))
			migrate, _, err := cmd.Find([]string{"migrate"}) // it has no other flags for its commands
			if err != nil {
				t.Fatal(err)
			}
			migrate.PersistentFlags().VisitAll(func(f *pflag.Flag) { database[f.Name] = true })
			page.WriteString("## Flags of a database\n\n" + flagTable(migrate.PersistentFlags(), nil))
			return
		}
		if cmd.Name() == "help" || strings.HasPrefix(cmd.CommandPath(), "tenure completion ") {
			return
		}
		cmd.InheritedFlags() // adds them to cmd.Flags()
		name := strings.TrimPrefix(cmd.CommandPath(), "tenure ")
		page.WriteString("##" + strings.Repeat("#", strings.Count(name, " ")) + " " + name + "\n\n    " + cmd.UseLine() + "\n\n")
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		page.WriteString(literalWord.ReplaceAllString(strings.TrimSpace(text), "$1`$2`") + "\n\n")
		if cmd.Example != "" {
			page.WriteString("```sh\n" + strings.ReplaceAll(strings.TrimSpace(cmd.Example), "\n  ", "\n") + "\n```\n\n")
		}
		leftOut := maps.Clone(global)
		if hasAll(cmd, database) {
			maps.Copy(leftOut, database)
			page.WriteString("The [flags of a database](#flags-of-a-database) apply.\n\n")
		}
		page.WriteString(flagTable(cmd.Flags(), leftOut))
	})
	if err := docpage.CheckReference("../../../../docs/reference/cli.md", page.String()); err != nil {
		t.Error(err)
	}
}

func hasAll(cmd *cobra.Command, flags map[string]bool) bool {
	for name := range flags {
		if cmd.Flag(name) == nil {
			return false
		}
	}
	return true
}

// flagTable lists the flags of a command, without the ones that it leaves out.
func flagTable(flags *pflag.FlagSet, leftOut map[string]bool) string {
	rows := ""
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" || leftOut[f.Name] {
			return
		}
		name, short, standard := "--"+f.Name, "", f.DefValue
		if f.Shorthand != "" {
			short = "-" + f.Shorthand
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + strings.TrimSuffix(value, "Array")
		}
		if standard == "false" || standard == "[]" || standard == "0s" && strings.Contains(usage, "default") {
			standard = ""
		}
		before, after, found := strings.Cut(usage, " (default ")
		if after, closed := strings.CutSuffix(after, ")"); found && closed {
			usage, standard = before, after
		} else {
			standard = docpage.Code(standard)
		}
		rows += docpage.Row(docpage.Code(short, name), standard, literalWord.ReplaceAllString(usage, "$1`$2`"))
	})
	if rows == "" {
		return ""
	}
	return docpage.Head("flag", "default", "meaning") + rows + "\n"
}

// The help of pflag shows every default that is not the zero value of its type, also an empty one.
func TestHelpShowsNoEmptyDefault(t *testing.T) {
	t.Parallel()
	walk(wholeTree(), func(cmd *cobra.Command) {
		if usages := cmd.LocalFlags().FlagUsages(); strings.Contains(usages, "(default )") {
			t.Errorf("%s: the help shows an empty default:\n%s", cmd.CommandPath(), usages)
		}
	})
}
