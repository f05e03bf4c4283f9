package connect

import (
	"context"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// byFlag is the flag for the requester of a change.
type byFlag struct{ name string }

func (f *byFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "by", "", "requester to record with the change (default user@host)")
}

func (f *byFlag) check(flags *pflag.FlagSet) error {
	if flags.Changed("by") && f.name == "" {
		return console.Usage("--by is empty")
	}
	return nil
}

// requester returns the requester to record.
func (f *byFlag) requester(flags *pflag.FlagSet) string {
	if !flags.Changed("by") {
		return WhoAsks()
	}
	return f.name
}

// Changes makes cmd print the changes by operators to its argument, or to
// everything. column is the header for the names.
func (s *Subject[M]) Changes(out *console.Output, cmd *cobra.Command, column string, read func(ctx context.Context, m M, name string, most int) (record.OperatorChanges, error)) *cobra.Command {
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
		changes, err := read(ctx, m, name, most)
		if err != nil {
			return err
		}
		rows := [][]string{{"AT", "BY", column, "ACTION", "DETAIL"}}
		for _, r := range changes.Changes {
			rows = append(rows, []string{console.DayTime(time.Time(r.At)), console.Flatten(r.By), console.Flatten(r.Name), r.Action, console.OrDash(console.Flatten(r.Detail))})
		}
		return out.PrintTable(changes, rows)
	})
}

// CheckCount validates --count.
func CheckCount(n int) error {
	if n < 1 {
		return console.Usage("--count is %d; it must be at least 1", n)
	}
	return nil
}

// maxRows is the maximum number of rows of a request.
const maxRows = 100_000

// WhoAsks returns the current user as a requester.
func WhoAsks() string {
	host, _ := os.Hostname() // without the host, the user's name has to suffice
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return name + "@" + host
}
