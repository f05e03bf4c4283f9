package main

import (
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// byFlag is the flag that says who makes a change.
type byFlag struct{ name string }

func (f *byFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "by", "", "who makes the change, for the record; default the user and the host")
}

// who returns the name for the record.
func (f *byFlag) who(flags *pflag.FlagSet) (string, error) {
	switch {
	case !flags.Changed("by"):
		return whoAsks(), nil
	case f.name == "":
		return "", usage("--by is empty")
	}
	return f.name, nil
}

// handChangesRecord is what was done by hand, as it is printed.
type handChangesRecord struct {
	Changes []handChangeRecord `json:"changes"`
}

type handChangeRecord struct {
	At     timestamp `json:"at"`
	By     string    `json:"by"`
	Name   string    `json:"name"` // of what was changed
	Action string    `json:"action"`
	Detail string    `json:"detail,omitempty"`
}

// printChanges prints changes; column is what the names in them are of.
func printChanges(out *output, column string, records []handChangeRecord) error {
	rows := [][]string{{"AT", "BY", column, "ACTION", "DETAIL"}}
	for _, r := range records {
		rows = append(rows, []string{dayTime(time.Time(r.At)), flatten(r.By), flatten(r.Name), r.Action, orDash(flatten(r.Detail))})
	}
	return out.printTable(handChangesRecord{append([]handChangeRecord{}, records...)}, rows)
}

// changesCommand completes a command that prints changes of what its argument
// names, or of everything.
func changesCommand(database *databaseFlags, cmd *cobra.Command, show func(cmd *cobra.Command, name string, most int) error) *cobra.Command {
	most := number{value: 20, most: mostRows}
	named := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return named(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkCount(most.value); err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return show(cmd, name, most.value)
	}
	database.register(cmd.Flags())
	cmd.Flags().VarP(&most, "count", "n", "how many")
	return cmd
}

// checkCount checks how many are asked for.
func checkCount(n int) error {
	if n < 1 {
		return usage("--count is %d; the least is 1", n)
	}
	return nil
}

// mostRows is how many rows are asked for at once at most.
const mostRows = 100_000

// whoAsks names the present user for the record.
func whoAsks() string {
	host, _ := os.Hostname() // without it the user's name has to do
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return name + "@" + host
}
