package cron

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cron"
)

const cronHistoryLong = `Print the runs of a schedule, latest tick first. A run is "waiting", "running",
"succeeded", "failed", "timed_out", "panicked", "abandoned" (interrupted and not
repeated), "missed" (there was no leader in time) or "skipped" (an earlier run had
not ended). If very many ticks were missed, one row represents TICKS of them.`

func newCronHistory(out *console.Output) *cobra.Command {
	return subject.ReadMost(&cobra.Command{
		Use: "history SCHEDULE", Short: "Print the runs of a schedule", Long: cronHistoryLong, Example: "  tenure cron history backup -n 100",
	}, func(ctx context.Context, schedules *cron.Admin, args []string, most int) error {
		records, err := schedules.History(ctx, args[0], most)
		if err != nil {
			return err
		}
		return out.PrintTable(newHistoryRecord(args[0], records), runRows(records))
	})
}

// HistoryRecord lists the runs of a schedule as printed.
type HistoryRecord struct {
	Schedule string      `json:"schedule"`
	Runs     []RunRecord `json:"runs"`
}

// RunRecord is a run of a schedule as printed.
type RunRecord struct {
	Run          int64             `json:"run"`
	ScheduledFor console.Timestamp `json:"scheduled_for"`
	State        cron.State        `json:"state"`
	Ticks        int64             `json:"ticks"`
	Manual       bool              `json:"manual"`
	RequestedBy  string            `json:"requested_by,omitempty"`
	Attempt      int               `json:"attempt"`
	Term         *int64            `json:"term"` // null if it never ran, like the node
	Node         *uuid.UUID        `json:"node"`
	NodeName     string            `json:"node_name"`
	ClaimedAt    console.Timestamp `json:"claimed_at"`
	StartedAt    console.Timestamp `json:"started_at"`
	EndedAt      console.Timestamp `json:"ended_at"`
	Error        string            `json:"error,omitempty"`
}

func newRunRecord(r cron.Record) RunRecord {
	record := RunRecord{
		Run: r.ID, ScheduledFor: console.Timestamp(r.ScheduledFor), State: r.State, Ticks: r.Ticks, Manual: r.Manual, RequestedBy: r.RequestedBy,
		Attempt: r.Attempt, NodeName: r.NodeName, ClaimedAt: console.Timestamp(r.ClaimedAt), StartedAt: console.Timestamp(r.StartedAt),
		EndedAt: console.Timestamp(r.EndedAt), Error: r.Error,
	}
	if r.NodeID != uuid.Nil {
		record.Term, record.Node = &r.Term, &r.NodeID
	}
	return record
}

func newHistoryRecord(schedule string, records []cron.Record) HistoryRecord {
	all := HistoryRecord{schedule, []RunRecord{}}
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
			term = console.Count(r.Term)
		}
		rows = append(rows, []string{
			console.Count(r.ID), console.DayTime(r.ScheduledFor), string(r.State), console.Count(r.Ticks), strconv.Itoa(r.Attempt), term,
			console.OrDash(console.Flatten(r.NodeName)), console.DayTime(r.StartedAt), took, console.OrDash(console.Flatten(r.RequestedBy)), console.OrDash(console.Flatten(r.Error)),
		})
	}
	return rows
}
