package cron

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const cronListLong = `List the schedules in the database.

STATUS is "active", "paused", "unled" (no leader runs the schedule), "failing" (its
leader cannot work: last_error in JSON says why), "ahead" (it waits until NEXT for a
clock that was set back) or "overdue" (a tick waits for over a minute). NEXT is the next tick,
without jitter. LAST is the last run that started, with its state. Both are in the
schedule's time zone. MISSED counts the ticks that were missed for lack of a leader.`

func newCronList(out *console.Output) *cobra.Command {
	return subject.Read(&cobra.Command{
		Use: "list", Short: "List the schedules with their next ticks and last runs", Long: cronListLong, Args: console.NoArgs,
	}, func(ctx context.Context, schedules *cron.Admin, _ []string) error {
		statuses, err := schedules.List(ctx)
		if err != nil {
			return err
		}
		return out.PrintTable(record.NewSchedules(statuses), scheduleRows(statuses),
			"ROLE", "TIMEZONE", "WAITING", "RUNNING", "EXPRESSION", "MISSED", "FAILURES")
	})
}

func scheduleRows(statuses []cron.Status) [][]string {
	rows := [][]string{{"SCHEDULE", "STATUS", "EXPRESSION", "TIMEZONE", "NEXT", "LAST", "RUNNING", "WAITING", "MISSED", "FAILURES", "ROLE"}}
	for _, s := range statuses {
		last, next := "-", console.DayTime(s.Next)
		if s.Last != nil {
			at := s.Last.ScheduledFor
			if zone, err := time.LoadLocation(s.Zone); err == nil {
				at = at.In(zone) // as the next one
			}
			last = console.DayTime(at) + " " + string(s.Last.State)
		}
		if s.Problem != nil {
			next = console.OneLine(s.Problem)
		}
		rows = append(rows, []string{
			console.Flatten(s.Name), record.ScheduleStatus(s), console.Flatten(s.Expression), console.Flatten(s.Zone), next, last,
			console.Count(s.Running), console.Count(s.Waiting), console.Count(s.Missed), console.Count(s.Failures), console.Flatten(s.Role),
		})
	}
	return rows
}
