package cron

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronListLong = `List the schedules in the database.

STATUS is "active", "paused", or "unled" if no leader runs the schedule now: its
role has no leader, or the leader does not have the schedule. NEXT is the next tick,
without jitter, in the schedule's time zone. LAST is the last run that started, with
its state. MISSED counts the ticks that were missed for lack of a leader.`

func newCronList(out *console.Output) *cobra.Command {
	return subject.Read(&cobra.Command{
		Use: "list", Short: "List the schedules with their next ticks and last runs", Long: cronListLong, Args: console.NoArgs,
	}, func(ctx context.Context, schedules *cron.Admin, _ []string) error {
		statuses, err := schedules.List(ctx)
		if err != nil {
			return err
		}
		return out.PrintTable(newSchedulesRecord(statuses), scheduleRows(statuses),
			"ROLE", "TIMEZONE", "WAITING", "RUNNING", "EXPRESSION", "MISSED", "FAILURES")
	})
}

// SchedulesRecord is the list of schedules as printed.
type SchedulesRecord struct {
	Schedules []ScheduleRecord `json:"schedules"`
}

// ScheduleRecord is a schedule as printed.
type ScheduleRecord struct {
	Schedule       string            `json:"schedule"`
	Status         string            `json:"status"`
	Expression     string            `json:"expression"`
	Timezone       string            `json:"timezone"`
	CatchUp        cron.CatchUp      `json:"catch_up"`
	CatchUpLimit   int               `json:"catch_up_limit"`
	Overlap        cron.Overlap      `json:"overlap"`
	Policy         cron.Policy       `json:"policy"`
	JitterSeconds  float64           `json:"jitter_seconds"`
	TimeoutSeconds float64           `json:"timeout_seconds"` // 0 for none
	Role           string            `json:"role"`
	Term           int64             `json:"term"` // the last term whose leader ran the schedule
	Loaded         bool              `json:"loaded"`
	Paused         bool              `json:"paused"`
	Next           console.Timestamp `json:"next"` // null if it is paused
	Last           *RunRecord        `json:"last"` // null if it never ran
	Waiting        int64             `json:"waiting"`
	Running        int64             `json:"running"`
	Missed         int64             `json:"missed"`
	Failures       int64             `json:"failures"`
	Panics         int64             `json:"panics"`
	HandledUntil   console.Timestamp `json:"handled_until"`
	Problem        string            `json:"problem,omitempty"`
}

func newSchedulesRecord(statuses []cron.Status) SchedulesRecord {
	all := SchedulesRecord{[]ScheduleRecord{}}
	for _, s := range statuses {
		r := ScheduleRecord{
			Schedule: s.Name, Status: scheduleStatus(s), Expression: s.Expression, Timezone: s.Zone,
			CatchUp: s.CatchUp, CatchUpLimit: s.CatchUpLimit, Overlap: s.Overlap, Policy: s.Policy,
			JitterSeconds: s.Jitter.Seconds(), TimeoutSeconds: s.Timeout.Seconds(),
			Role: s.Role, Term: s.Term, Loaded: s.Loaded, Paused: s.Paused, Next: console.Timestamp(s.Next),
			Waiting: s.Waiting, Running: s.Running, Missed: s.Missed, Failures: s.Failures, Panics: s.Panics,
			HandledUntil: console.Timestamp(s.HandledUntil),
		}
		if s.Last != nil {
			last := newRunRecord(*s.Last)
			r.Last = &last
		}
		if s.Problem != nil {
			r.Problem = console.OneLine(s.Problem)
		}
		all.Schedules = append(all.Schedules, r)
	}
	return all
}

func scheduleStatus(s cron.Status) string {
	switch {
	case s.Paused:
		return "paused"
	case !s.Loaded:
		return "unled"
	}
	return "active"
}

func scheduleRows(statuses []cron.Status) [][]string {
	rows := [][]string{{"SCHEDULE", "STATUS", "EXPRESSION", "TIMEZONE", "NEXT", "LAST", "RUNNING", "WAITING", "MISSED", "FAILURES", "ROLE"}}
	for _, s := range statuses {
		last, next := "-", console.DayTime(s.Next)
		if s.Last != nil {
			last = console.DayTime(s.Last.ScheduledFor) + " " + string(s.Last.State)
		}
		if s.Problem != nil {
			next = console.OneLine(s.Problem)
		}
		rows = append(rows, []string{
			console.Flatten(s.Name), scheduleStatus(s), console.Flatten(s.Expression), console.Flatten(s.Zone), next, last,
			console.Count(s.Running), console.Count(s.Waiting), console.Count(s.Missed), console.Count(s.Failures), console.Flatten(s.Role),
		})
	}
	return rows
}
