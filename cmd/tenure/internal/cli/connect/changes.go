package connect

import (
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
)

// ByFlag is the flag that says who makes a change.
type ByFlag struct{ name string }

// Register adds the flag.
func (f *ByFlag) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "by", "", "who makes the change, for the record; default the user and the host")
}

// Who returns the name for the record.
func (f *ByFlag) Who(flags *pflag.FlagSet) (string, error) {
	switch {
	case !flags.Changed("by"):
		return WhoAsks(), nil
	case f.name == "":
		return "", console.Usage("--by is empty")
	}
	return f.name, nil
}

// ChangesRecord is what was done by hand, as it is printed.
type ChangesRecord struct {
	Changes []ChangeRecord `json:"changes"`
}

// ChangeRecord is one change as it is printed.
type ChangeRecord struct {
	At     console.Timestamp `json:"at"`
	By     string            `json:"by"`
	Name   string            `json:"name"` // of what was changed
	Action string            `json:"action"`
	Detail string            `json:"detail,omitempty"`
}

// PrintChanges prints changes; column is what the names in them are of.
func PrintChanges(out *console.Output, column string, records []ChangeRecord) error {
	rows := [][]string{{"AT", "BY", column, "ACTION", "DETAIL"}}
	for _, r := range records {
		rows = append(rows, []string{console.DayTime(time.Time(r.At)), console.Flatten(r.By), console.Flatten(r.Name), r.Action, console.OrDash(console.Flatten(r.Detail))})
	}
	return out.PrintTable(ChangesRecord{append([]ChangeRecord{}, records...)}, rows)
}

// ChangesCommand completes a command that prints changes of what its argument
// names, or of everything.
func ChangesCommand(database *DatabaseFlags, cmd *cobra.Command, show func(cmd *cobra.Command, name string, most int) error) *cobra.Command {
	most := flagvalue.Number{Value: 20, Most: MostRows}
	named := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return named(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := CheckCount(most.Value); err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return show(cmd, name, most.Value)
	}
	database.Register(cmd.Flags())
	cmd.Flags().VarP(&most, "count", "n", "how many")
	return cmd
}

// CheckCount checks how many are asked for.
func CheckCount(n int) error {
	if n < 1 {
		return console.Usage("--count is %d; the least is 1", n)
	}
	return nil
}

// MostRows is how many rows are asked for at once at most.
const MostRows = 100_000

// WhoAsks names the present user for the record.
func WhoAsks() string {
	host, _ := os.Hostname() // without it the user's name has to do
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return name + "@" + host
}
