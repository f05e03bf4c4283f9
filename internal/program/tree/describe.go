package tree

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describe completes the descriptions of a command and its subcommands. The usage of a flag has
// the name of its value in backquotes; help shows the name, and completions and manual pages
// would show the backquotes. A command without a long description gets its short one as a sentence.
func describe(cmd *cobra.Command) {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(nameValue)
		flags.VisitAll(encloseDefault)
	}
	for _, below := range cmd.Commands() {
		describe(below)
	}
}

// nameValue moves the name of a flag's value from its usage to its type.
func nameValue(flag *pflag.Flag) {
	if !strings.Contains(flag.Usage, "`") {
		return
	}
	kind, usage := pflag.UnquoteUsage(flag)
	flag.Usage = usage
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Value, flag.DefValue = namedList{namedValue{flag.Value, kind}, list}, ""
		return
	}
	flag.Value = namedValue{flag.Value, kind}
	if flag.DefValue == "0" { // not given: a number, such as a version
		flag.DefValue = ""
	}
}

// encloseDefault writes a variable default like the defaults known to pflag.
func encloseDefault(flag *pflag.Flag) {
	usage, standard, found := strings.Cut(flag.Usage, "; default ")
	if found && !strings.Contains(standard, ";") {
		flag.Usage = usage + " (default " + standard + ")"
	}
}

// namedValue is the value of a flag with a name for its kind.
type namedValue struct {
	pflag.Value
	kind string
}

// Type implements pflag.Value.
func (v namedValue) Type() string { return v.kind }

// namedList is a namedValue with several elements.
type namedList struct {
	namedValue
	pflag.SliceValue
}
