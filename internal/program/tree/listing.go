package tree

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Listing is a command as another program lists it.
type Listing struct {
	Use      string       `json:"use"`
	Short    string       `json:"short"`
	Long     string       `json:"long"`
	Example  string       `json:"example"`
	Flags    []ListedFlag `json:"flags"`
	Commands []Listing    `json:"commands"`
}

// ListedFlag is a flag of a command.
type ListedFlag struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand"`
	Usage     string `json:"usage"`
	Default   string `json:"default"`
	Type      string `json:"type"`
	NoValue   string `json:"no_value"` // the value without one, as of a switch
	Hidden    bool   `json:"hidden"`
	Inherited bool   `json:"inherited"` // by the commands below
}

// NewListing returns the hidden command that lists all commands of a program.
func NewListing(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "commands", Hidden: true, Short: "List all commands as JSON",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(list(root))
		},
	}
}

func list(cmd *cobra.Command) Listing {
	l := Listing{Use: cmd.Use, Short: cmd.Short, Long: cmd.Long, Example: cmd.Example}
	add := func(inherited bool) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			l.Flags = append(l.Flags, ListedFlag{f.Name, f.Shorthand, f.Usage, f.DefValue, f.Value.Type(), f.NoOptDefVal, f.Hidden, inherited})
		}
	}
	cmd.PersistentFlags().VisitAll(add(true))
	cmd.LocalNonPersistentFlags().VisitAll(add(false))
	for _, below := range cmd.Commands() {
		if !below.Hidden {
			l.Commands = append(l.Commands, list(below))
		}
	}
	return l
}
