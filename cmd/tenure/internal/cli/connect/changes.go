package connect

import (
	"context"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

// byFlag is the flag that says who makes a change.
type byFlag struct{ name string }

func (f *byFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "by", "", "who makes the change, for the record; default the user and the host")
}

func (f *byFlag) check(flags *pflag.FlagSet) error {
	if flags.Changed("by") && f.name == "" {
		return console.Usage("--by is empty")
	}
	return nil
}

// who returns the name for the record.
func (f *byFlag) who(flags *pflag.FlagSet) string {
	if !flags.Changed("by") {
		return WhoAsks()
	}
	return f.name
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

// Changes makes a command print what was done by hand to what its argument names,
// or to everything. Column is the header of the names.
func (s *Subject[M]) Changes(out *console.Output, cmd *cobra.Command, column string, read func(ctx context.Context, m M, name string, most int) ([]ChangeRecord, error)) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return s.One(cmd, args)
	}
	cmd.ValidArgsFunction = s.Complete
	return s.ReadMost(cmd, func(ctx context.Context, m M, args []string, most int) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		records, err := read(ctx, m, name, most)
		if err != nil {
			return err
		}
		rows := [][]string{{"AT", "BY", column, "ACTION", "DETAIL"}}
		for _, r := range records {
			rows = append(rows, []string{console.DayTime(time.Time(r.At)), console.Flatten(r.By), console.Flatten(r.Name), r.Action, console.OrDash(console.Flatten(r.Detail))})
		}
		return out.PrintTable(ChangesRecord{append([]ChangeRecord{}, records...)}, rows)
	})
}

// CheckCount checks how many are asked for.
func CheckCount(n int) error {
	if n < 1 {
		return console.Usage("--count is %d; the least is 1", n)
	}
	return nil
}

// mostRows is how many rows are asked for at once at most.
const mostRows = 100_000

// WhoAsks names the present user for the record.
func WhoAsks() string {
	host, _ := os.Hostname() // without it the user's name has to do
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return name + "@" + host
}
