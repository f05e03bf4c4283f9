package record

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/cron"
)

// mostFailedInRow is how far cron.Status.FailedInRow counts.
const mostFailedInRow = 100

// AtLeast returns the words before a number of failed runs in a row if there may be more of them.
func AtLeast(failedInRow int64) string {
	if failedInRow >= mostFailedInRow {
		return "at least "
	}
	return ""
}

// Schedules is the list of schedules as printed.
type Schedules struct {
	Schedules []Schedule `json:"schedules"`
}

// Schedule is a schedule as printed.
type Schedule struct {
	Schedule       string         `json:"schedule"`
	Status         string         `json:"status"`
	Expression     string         `json:"expression"`
	Timezone       string         `json:"timezone"`
	CatchUp        cron.CatchUp   `json:"catch_up"`
	CatchUpLimit   int            `json:"catch_up_limit"`
	Overlap        cron.Overlap   `json:"overlap"`
	Policy         cron.Policy    `json:"policy"`
	JitterSeconds  float64        `json:"jitter_seconds"`
	TimeoutSeconds float64        `json:"timeout_seconds"` // 0 for none
	Retries        int            `json:"retries"`         // the maximum for a run
	Override       *cron.Override `json:"override"`        // what operators have set; null if nothing
	Role           string         `json:"role"`
	Term           int64          `json:"term"` // the last term whose leader ran the schedule
	Loaded         bool           `json:"loaded"`
	Paused         bool           `json:"paused"`
	Next           Time           `json:"next"` // null if it is paused
	Last           *Run           `json:"last"` // null if it never ran
	Waiting        int64          `json:"waiting"`
	Running        int64          `json:"running"`
	Missed         int64          `json:"missed"`
	Failures       int64          `json:"failures"`
	Panics         int64          `json:"panics"`
	HandledUntil   Time           `json:"handled_until"`
	AheadSeconds   float64        `json:"ahead_seconds"`   // of handled_until; 0 if it is not ahead of the clock
	OverdueSeconds float64        `json:"overdue_seconds"` // of the next tick; 0 if it is not overdue
	Errors         int64          `json:"errors"`          // how often in a row the leader could not work
	LastError      string         `json:"last_error,omitempty"`
	FailingSince   Time           `json:"failing_since"`
	Problem        string         `json:"problem,omitempty"`
}

// NewSchedules returns the list of schedules.
func NewSchedules(statuses []cron.Status) Schedules {
	all := Schedules{[]Schedule{}}
	for _, s := range statuses {
		all.Schedules = append(all.Schedules, NewSchedule(s))
	}
	return all
}

// NewSchedule returns a schedule.
func NewSchedule(s cron.Status) Schedule {
	r := Schedule{
		Schedule: s.Name, Status: ScheduleStatus(s), Expression: s.Expression, Timezone: s.Zone,
		CatchUp: s.CatchUp, CatchUpLimit: s.CatchUpLimit, Overlap: s.Overlap, Policy: s.Policy,
		JitterSeconds: s.Jitter.Seconds(), TimeoutSeconds: s.Timeout.Seconds(), Retries: s.Retries, Override: s.Override,
		Role: s.Role, Term: s.Term, Loaded: s.Loaded, Paused: s.Paused, Next: Time(s.Next),
		Waiting: s.Waiting, Running: s.Running, Missed: s.Missed, Failures: s.Failures, Panics: s.Panics,
		HandledUntil: Time(s.HandledUntil), AheadSeconds: s.Ahead.Seconds(), OverdueSeconds: s.Overdue.Seconds(),
		Errors: s.Errors, LastError: s.LastError, FailingSince: Time(s.FailingSince),
	}
	if s.Last != nil {
		last := NewRun(*s.Last)
		r.Last = &last
	}
	if s.Problem != nil {
		r.Problem = s.Problem.Error()
	}
	return r
}

// ScheduleStatus returns a schedule's status in a word.
func ScheduleStatus(s cron.Status) string {
	switch {
	case s.Paused:
		return "paused"
	case !s.FailingSince.IsZero():
		return "failing"
	case !s.Loaded:
		return "unled"
	case s.Ahead > 0:
		return "ahead"
	case s.Overdue > 0:
		return "overdue"
	}
	return "active"
}

// Runs lists the runs of a schedule, or of all, as printed.
type Runs struct {
	Schedule string `json:"schedule,omitempty"` // empty for all
	Runs     []Run  `json:"runs"`
}

// Run is a run of a schedule as printed.
type Run struct {
	Run          int64      `json:"run"`
	Schedule     string     `json:"schedule"`
	ScheduledFor Time       `json:"scheduled_for"`
	State        cron.State `json:"state"`
	Ticks        int64      `json:"ticks"`
	Manual       bool       `json:"manual"`
	RequestedBy  string     `json:"requested_by,omitempty"`
	Attempt      int        `json:"attempt"`
	RetryAt      Time       `json:"retry_at"` // null if it does not wait for a retry
	Term         *int64     `json:"term"`     // null if it never ran, like the node
	Node         *uuid.UUID `json:"node"`
	NodeName     string     `json:"node_name"`
	ClaimedAt    Time       `json:"claimed_at"`
	StartedAt    Time       `json:"started_at"`
	EndedAt      Time       `json:"ended_at"`
	Error        string     `json:"error,omitempty"`
	OutputBytes  int        `json:"output_bytes"` // of the stored output
}

// RunWithOutput is a run of a schedule with its stored output.
type RunWithOutput struct {
	Run
	Output string `json:"output"`
}

// NewRun returns a run of a schedule.
func NewRun(r cron.Record) Run {
	record := Run{
		Run: r.ID, Schedule: r.Schedule, ScheduledFor: Time(r.ScheduledFor), State: r.State, Ticks: r.Ticks, Manual: r.Manual, RequestedBy: r.RequestedBy,
		Attempt: r.Attempt, RetryAt: Time(r.RetryAt), NodeName: r.NodeName, ClaimedAt: Time(r.ClaimedAt), StartedAt: Time(r.StartedAt),
		EndedAt: Time(r.EndedAt), Error: r.Error, OutputBytes: r.OutputBytes,
	}
	if r.NodeID != uuid.Nil {
		record.Term, record.Node = &r.Term, &r.NodeID
	}
	return record
}

// NewRuns returns the runs of a schedule, or of all if its name is empty.
func NewRuns(schedule string, records []cron.Record) Runs {
	all := Runs{schedule, []Run{}}
	for _, r := range records {
		all.Runs = append(all.Runs, NewRun(r))
	}
	return all
}

// ScheduleTicks lists the ticks of a schedule as printed.
type ScheduleTicks struct {
	Schedule string   `json:"schedule"`
	Next     []string `json:"next"`
}

// TriggeredSchedule is a requested run as printed.
type TriggeredSchedule struct {
	Schedule string `json:"schedule"`
	Run      int64  `json:"run"`
}

// BackfilledSchedule is the result of a backfill as printed.
type BackfilledSchedule struct {
	Schedule string `json:"schedule"`
	Ticks    int    `json:"ticks"` // of the range
	Runs     int    `json:"runs"`  // that were requested
}

// PausedSchedule is a paused or resumed schedule.
type PausedSchedule struct {
	Schedule string `json:"schedule"`
	Paused   bool   `json:"paused"`
}

// RemovedSchedule is a removed schedule.
type RemovedSchedule struct {
	Removed string `json:"removed"`
}

// NewScheduleTicks returns the ticks of a schedule, to the second, with their offset
// from UTC.
func NewScheduleTicks(schedule string, ticks []time.Time) ScheduleTicks {
	all := ScheduleTicks{schedule, []string{}}
	for _, tick := range ticks {
		all.Next = append(all.Next, tick.Format(time.RFC3339))
	}
	return all
}

// NewScheduleChanges returns the changes by operators to schedules.
func NewScheduleChanges(changes []cron.Change) []OperatorChange {
	all := []OperatorChange{}
	for _, c := range changes {
		all = append(all, OperatorChange{At: Time(c.At), By: c.By, Name: c.Schedule, Action: c.Action, Detail: c.Detail})
	}
	return all
}
