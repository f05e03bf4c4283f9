package work

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorListLong = `List the processors that a leader has run.

STATUS is "active", "paused" or "failed", and "rebuilding" if a rebuild was requested
and has not begun. "two roles" means that nodes run it under different roles, and all
but one are refused: see tenure processor show. "stuck" means that it cannot work although
no event is to blame, for example because it cannot read its log: LAST ERROR says why. NODE is where it last ran, with a star
while that node leads. CURSOR is the position up to which all events are handled, as
TRANSACTION:POSITION. BEHIND counts the events that waited at the leader's last
measurement: see tenure processor lag.`

func newProcessorList(out *console.Output) *cobra.Command {
	return subject.Read(&cobra.Command{
		Use: "list", Short: "List the processors", Long: processorListLong, Args: console.NoArgs,
	}, func(ctx context.Context, processors *processor.Admin, _ []string) error {
		statuses, err := processors.List(ctx)
		if err != nil {
			return err
		}
		return out.PrintTable(record.NewProcessors(statuses), processorRows(statuses),
			"TERM", "KIND", "CURSOR", "PROCESSED", "ROLE", "DEAD LETTERS", "ERRORS")
	})
}

func newProcessorShow(out *console.Output) *cobra.Command {
	return subject.Read(&cobra.Command{
		Use: "show PROCESSOR", Short: "Show the details of a processor", Example: "  tenure processor show balances -o json",
	}, func(ctx context.Context, processors *processor.Admin, args []string) error {
		status, err := processors.Show(ctx, args[0])
		if err != nil {
			return err
		}
		return out.PrintText(record.NewProcessor(status), func(page *console.Page) { page.Table(processorDetails(status)) })
	})
}

func processorRows(statuses []processor.Status) [][]string {
	rows := [][]string{{"PROCESSOR", "KIND", "STATUS", "NODE", "TERM", "CURSOR", "PROCESSED", "BEHIND", "ERRORS", "DEAD LETTERS", "ROLE", "LAST ERROR"}}
	for _, s := range statuses {
		r := record.NewProcessor(s)
		rows = append(rows, []string{
			console.Flatten(r.Processor), console.Flatten(r.Kind), statusWord(s), console.OrDash(leadingNode(s)), console.Count(r.Term), r.Cursor, console.Count(r.Processed),
			console.Count(r.Behind), strconv.Itoa(r.Errors), strconv.Itoa(r.DeadLetters), console.Flatten(r.Role), console.OrDash(console.Flatten(cmp.Or(r.StuckError, r.LastError))),
		})
	}
	return rows
}

func statusWord(s processor.Status) string {
	word := s.Status
	if s.Rebuilding {
		word += ", rebuilding"
	}
	if s.StuckError != "" {
		word += ", stuck"
	}
	if s.RefusedRole != "" {
		word += ", two roles"
	}
	return word
}

func leadingNode(s processor.Status) string {
	if s.Led {
		return console.Flatten(s.NodeName) + "*"
	}
	return console.Flatten(s.NodeName)
}

// processorDetails returns the details of a processor as a table.
func processorDetails(s processor.Status) [][]string {
	r := record.NewProcessor(s)
	failing := ""
	if r.Failing != nil {
		failing = *r.Failing
	}
	led := "no leader, last " + s.NodeName
	if s.Led {
		led = s.NodeName + " leads"
	}
	refused := ""
	if s.RefusedRole != "" {
		refused = fmt.Sprintf("role %s on node %s, until the term of role %s has ended", s.RefusedRole, s.RefusedNode, s.Role)
	}
	busy := ""
	if s.Busy {
		busy = "a batch may be in flight"
	}
	stuck := ""
	if s.StuckError != "" {
		stuck = fmt.Sprintf("since %s, %d errors: %s", console.DayTime(s.StuckSince), s.StuckErrors, s.StuckError)
	}
	rows := [][]string{
		{"processor", s.Name},
		{"kind", s.Kind},
		{"status", statusWord(s)},
		{"role", s.Role},
		{"node", led},
		{"refused", refused},
		{"term", console.Count(s.Term)},
		{"work", busy},
		{"log", s.Log},
		{"cursor", r.Cursor},
		{"processed", console.Count(s.Processed)},
		{"behind", fmt.Sprintf("%d, since %s, measured at %s", s.Behind, console.DayTime(s.WaitingSince), console.DayTime(s.MeasuredAt))},
		{"dead letters", strconv.Itoa(s.DeadLetters)},
		{"errors", strconv.Itoa(s.Errors)},
		{"panics", console.Count(s.Panics)},
		{"failing event", failing},
		{"stuck", stuck},
		{"last error", s.LastError},
		{"last error at", console.DayTime(s.LastErrorAt)},
		{"next attempt at", console.DayTime(s.NextAttemptAt)},
		{"updated at", s.UpdatedAt.Format(time.RFC3339)},
	}
	for i := range rows {
		rows[i][1] = console.OrDash(console.Flatten(rows[i][1]))
	}
	return rows
}
