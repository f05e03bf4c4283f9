package work

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/audit"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const auditLong = `Print what operators did, newest first: step-downs, hand-overs and drains, and changes of
schedules, processors and alerts, with the requester. With a name, print only what they did to objects with this name.

RESULT is "done", "failed" if a replay failed again, or "requested" if the dashboard sent a request and no effect of it is on
record. Terms that ended because their node drained are part of the drain.`

// actions are the actions of operators on objects with names.
var actions = &connect.Subject[*connect.WorkDatabase]{
	Name: "name", List: "tenure audit",
	Open:    func(d *connect.WorkDatabase) *connect.WorkDatabase { return d },
	Unknown: func(error) (name string, known []string) { return "", nil },
}

// NewAudit returns the command "tenure audit".
func NewAudit(out *console.Output) *cobra.Command {
	return actions.ReadMost(&cobra.Command{
		Use: "audit [NAME]", Short: "Print who did what, and when", Long: auditLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return actions.One(cmd, args)
		},
		Example: "  tenure audit billing\n  tenure audit --count 1000 -o json",
	}, func(ctx context.Context, d *connect.WorkDatabase, args []string, most int) error {
		entries, err := audit.Read(ctx, d.Backend, d.Pool, strings.Join(args, ""), most)
		if err != nil {
			return err
		}
		all := record.NewAudit(entries)
		rows := [][]string{{"AT", "BY", "ACTION", "KIND", "NAME", "RESULT", "DETAIL"}}
		for _, a := range all.Actions {
			rows = append(rows, []string{
				console.DayTime(time.Time(a.At)), console.Flatten(a.By), console.Flatten(a.Action), a.Kind, console.Flatten(a.Name), a.Result, console.OrDash(console.Flatten(a.Detail)),
			})
		}
		return out.PrintTable(all, rows, "DETAIL")
	})
}
