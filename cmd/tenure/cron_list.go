package main

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
)

const cronListLong = `List the schedules that the database knows.

STATUS is "active", "paused", or "unled" where no leader runs the schedule now:
nobody leads its role, or who does does not know it. NEXT is the next tick, without
jitter, in the schedule's time zone. LAST is the last run that began, and how it
stands. MISSED counts the ticks that nobody led for.`

func newCronList(out *output) *cobra.Command {
	var database databaseFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List the schedules with their next ticks and last runs", Long: cronListLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withSchedules(cmd.Context(), &database, func(schedules *cron.Management) error {
				statuses, err := schedules.List(cmd.Context())
				if err != nil {
					return err
				}
				return out.printTable(newSchedulesRecord(statuses), scheduleRows(statuses))
			})
		},
	}
	database.register(cmd.Flags())
	return cmd
}

// schedulesRecord is the list of schedules as it is printed.
type schedulesRecord struct {
	Schedules []scheduleRecord `json:"schedules"`
}

type scheduleRecord struct {
	Schedule       string       `json:"schedule"`
	Status         string       `json:"status"`
	Expression     string       `json:"expression"`
	Timezone       string       `json:"timezone"`
	CatchUp        cron.CatchUp `json:"catch_up"`
	CatchUpLimit   int          `json:"catch_up_limit"`
	Overlap        cron.Overlap `json:"overlap"`
	Policy         cron.Policy  `json:"policy"`
	JitterSeconds  float64      `json:"jitter_seconds"`
	TimeoutSeconds float64      `json:"timeout_seconds"` // 0: none
	Role           string       `json:"role"`
	Term           int64        `json:"term"` // the last whose leader knew the schedule
	Loaded         bool         `json:"loaded"`
	Paused         bool         `json:"paused"`
	Next           timestamp    `json:"next"` // null if it is paused
	Last           *runRecord   `json:"last"` // null if it never ran
	Waiting        int64        `json:"waiting"`
	Running        int64        `json:"running"`
	Missed         int64        `json:"missed"`
	Failures       int64        `json:"failures"`
	Panics         int64        `json:"panics"`
	HandledUntil   timestamp    `json:"handled_until"`
	Problem        string       `json:"problem,omitempty"`
}

func newSchedulesRecord(statuses []cron.Status) schedulesRecord {
	all := schedulesRecord{[]scheduleRecord{}}
	for _, s := range statuses {
		r := scheduleRecord{
			Schedule: s.Name, Status: scheduleStatus(s), Expression: s.Expression, Timezone: s.Zone,
			CatchUp: s.CatchUp, CatchUpLimit: s.CatchUpLimit, Overlap: s.Overlap, Policy: s.Policy,
			JitterSeconds: s.Jitter.Seconds(), TimeoutSeconds: s.Timeout.Seconds(),
			Role: s.Role, Term: s.Term, Loaded: s.Loaded, Paused: s.Paused, Next: timestamp(s.Next),
			Waiting: s.Waiting, Running: s.Running, Missed: s.Missed, Failures: s.Failures, Panics: s.Panics,
			HandledUntil: timestamp(s.HandledUntil),
		}
		if s.Last != nil {
			last := newRunRecord(*s.Last)
			r.Last = &last
		}
		if s.Problem != nil {
			r.Problem = oneLine(s.Problem)
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
		last, next := "-", dayTime(s.Next)
		if s.Last != nil {
			last = dayTime(s.Last.ScheduledFor) + " " + string(s.Last.State)
		}
		if s.Problem != nil {
			next = oneLine(s.Problem)
		}
		rows = append(rows, []string{
			flatten(s.Name), scheduleStatus(s), flatten(s.Expression), flatten(s.Zone), next, last,
			count(s.Running), count(s.Waiting), count(s.Missed), count(s.Failures), flatten(s.Role),
		})
	}
	return rows
}
