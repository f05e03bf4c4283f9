package main

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
)

const cronHistoryLong = `Print the runs of a schedule, the latest tick first. A run is "waiting", "running",
"succeeded", "failed", "timed_out", "panicked", "abandoned" (cut off, and not to be
repeated), "missed" (nobody led in time) or "skipped" (an earlier one had not
ended). For very many missed ticks one row stands for TICKS of them.`

func newCronHistory(out *output) *cobra.Command {
	var database databaseFlags
	count := number{value: 20, most: mostRows}
	cmd := &cobra.Command{
		Use: "history SCHEDULE", Short: "Print the runs of a schedule", Long: cronHistoryLong, Args: oneSchedule,
		Example: "  tenure cron history backup -n 100",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(count.value); err != nil {
				return err
			}
			return withSchedules(cmd.Context(), &database, func(schedules *cron.Management) error {
				records, err := schedules.History(cmd.Context(), args[0], count.value)
				if err != nil {
					return err
				}
				return out.printTable(newHistoryRecord(args[0], records), runRows(records))
			})
		},
		ValidArgsFunction: completeSchedule,
	}
	database.register(cmd.Flags())
	cmd.Flags().VarP(&count, "count", "n", "how many")
	return cmd
}

// historyRecord are the runs of a schedule as they are printed.
type historyRecord struct {
	Schedule string      `json:"schedule"`
	Runs     []runRecord `json:"runs"`
}

type runRecord struct {
	Run          int64      `json:"run"`
	ScheduledFor timestamp  `json:"scheduled_for"`
	State        cron.State `json:"state"`
	Ticks        int64      `json:"ticks"`
	Manual       bool       `json:"manual"`
	RequestedBy  string     `json:"requested_by,omitempty"`
	Attempt      int        `json:"attempt"`
	Term         *int64     `json:"term"` // null if it never ran, as is the node
	Node         *uuid.UUID `json:"node"`
	NodeName     string     `json:"node_name"`
	ClaimedAt    timestamp  `json:"claimed_at"`
	StartedAt    timestamp  `json:"started_at"`
	EndedAt      timestamp  `json:"ended_at"`
	Error        string     `json:"error,omitempty"`
}

func newRunRecord(r cron.Record) runRecord {
	record := runRecord{
		Run: r.ID, ScheduledFor: timestamp(r.ScheduledFor), State: r.State, Ticks: r.Ticks, Manual: r.Manual, RequestedBy: r.RequestedBy,
		Attempt: r.Attempt, NodeName: r.NodeName, ClaimedAt: timestamp(r.ClaimedAt), StartedAt: timestamp(r.StartedAt),
		EndedAt: timestamp(r.EndedAt), Error: r.Error,
	}
	if r.NodeID != uuid.Nil {
		record.Term, record.Node = &r.Term, &r.NodeID
	}
	return record
}

func newHistoryRecord(schedule string, records []cron.Record) historyRecord {
	all := historyRecord{schedule, []runRecord{}}
	for _, r := range records {
		all.Runs = append(all.Runs, newRunRecord(r))
	}
	return all
}

func runRows(records []cron.Record) [][]string {
	rows := [][]string{{"RUN", "SCHEDULED FOR", "STATE", "TICKS", "ATTEMPT", "TERM", "NODE", "STARTED", "TOOK", "BY", "ERROR"}}
	for _, r := range records {
		took, term := "-", "-"
		if !r.StartedAt.IsZero() && !r.EndedAt.IsZero() {
			took = r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
		}
		if r.NodeID != uuid.Nil {
			term = count(r.Term)
		}
		rows = append(rows, []string{
			count(r.ID), dayTime(r.ScheduledFor), string(r.State), count(r.Ticks), strconv.Itoa(r.Attempt), term,
			orDash(flatten(r.NodeName)), dayTime(r.StartedAt), took, orDash(flatten(r.RequestedBy)), orDash(flatten(r.Error)),
		})
	}
	return rows
}
