package cron

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronHistoryLong = `Print the runs of a schedule, or of all, newest first. A run is "waiting", "running",
"succeeded", "failed", "timed_out", "panicked", "abandoned" (interrupted and not
repeated), "missed" (there was no leader in time) or "skipped" (an earlier run had not
ended). A row can represent several missed ticks; TICKS is their number. With --run,
print the stored output of one run: the last 64 KiB that its command wrote to standard
output and standard error.`

func newCronHistory(out *console.Output) *cobra.Command {
	var run int64
	cmd := &cobra.Command{
		Use: "history [SCHEDULE | --run RUN]", Short: "Print the runs of a schedule, or of all", Long: cronHistoryLong, Example: "  tenure cron history backup -n 100\n  tenure cron history --run 42",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("run") && (len(args) > 0 || run < 1) {
				return console.Usage("use --run with the number of a run, in column RUN, and without a schedule")
			}
			if len(args) == 0 {
				return nil
			}
			return subject.One(cmd, args)
		},
		ValidArgsFunction: subject.Complete,
	}
	cmd.Flags().Int64Var(&run, "run", 0, "print the output of the run with this `number`")
	return subject.ReadMost(cmd, func(ctx context.Context, schedules *cron.Admin, args []string, most int) error {
		if run > 0 {
			return printOutput(ctx, out, schedules, run)
		}
		if len(args) == 0 {
			records, err := allRuns(ctx, schedules, most)
			if err != nil {
				return err
			}
			return out.PrintTable(record.NewRuns("", records), runRows(records, true), omittedOfRuns...)
		}
		records, err := schedules.History(ctx, args[0], most)
		if err != nil {
			return err
		}
		return out.PrintTable(record.NewRuns(args[0], records), runRows(records, false), omittedOfRuns...)
	})
}

// printOutput prints a run with its output.
func printOutput(ctx context.Context, out *console.Output, schedules *cron.Admin, id int64) error {
	r, err := schedules.Run(ctx, id)
	if err != nil {
		return err
	}
	return out.PrintText(record.RunWithOutput{Run: record.NewRun(r), Output: r.Output}, func(page *console.Page) {
		if r.Output != "" {
			fmt.Fprintln(page, strings.TrimSuffix(r.Output, "\n"))
		}
	})
}

// allRuns returns the latest runs of all schedules, latest tick first.
func allRuns(ctx context.Context, schedules *cron.Admin, most int) ([]cron.Record, error) {
	known, err := schedules.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []cron.Record
	for _, schedule := range known {
		records, err := schedules.History(ctx, schedule.Name, most)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	slices.SortStableFunc(all, func(a, b cron.Record) int { return b.ScheduledFor.Compare(a.ScheduledFor) })
	return all[:min(len(all), most)], nil
}

// omittedOfRuns are the columns to omit on a narrow terminal.
var omittedOfRuns = []string{"TERM", "TICKS", "RUN", "BY", "ATTEMPT", "STARTED", "TOOK"}

// runRows returns the rows of a table, with the schedule of each run if wanted.
func runRows(records []cron.Record, named bool) [][]string {
	rows := [][]string{{"RUN", "SCHEDULED FOR", "STATE", "TICKS", "ATTEMPT", "TERM", "NODE", "STARTED", "TOOK", "BY", "ERROR"}}
	for _, r := range records {
		took, term := "-", "-"
		if !r.StartedAt.IsZero() && !r.EndedAt.IsZero() {
			took = r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
		}
		if r.NodeID != uuid.Nil {
			term = console.Count(r.Term)
		}
		rows = append(rows, []string{
			console.Count(r.ID), console.DayTime(r.ScheduledFor), string(r.State), console.Count(r.Ticks), strconv.Itoa(r.Attempt), term,
			console.OrDash(console.Flatten(r.NodeName)), console.DayTime(r.StartedAt), took, console.OrDash(console.Flatten(r.RequestedBy)), console.OrDash(console.Flatten(r.Error)),
		})
	}
	if named {
		rows[0] = slices.Insert(rows[0], 1, "SCHEDULE")
		for i, r := range records {
			rows[i+1] = slices.Insert(rows[i+1], 1, console.Flatten(r.Schedule))
		}
	}
	return rows
}
