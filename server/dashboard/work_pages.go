package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/processor"
)

// Bounds on the contents of the page of a processor or a schedule.
const (
	maxRunsShown        = 100
	maxTicksShown       = 10
	maxDeadLettersShown = 200
	maxWorkChanges      = 50
)

// workChange is an operator's change to a processor or a schedule.
type workChange struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Action string    `json:"action"`
	Detail string    `json:"detail"`
}

// scheduleDetail is what the page of a schedule shows beside its record.
type scheduleDetail struct {
	Runs    []runDetail  `json:"runs"` // the latest first
	Next    []time.Time  `json:"next"` // the next ticks; empty if it is paused
	Changes []workChange `json:"changes"`
}

// runDetail is a run of a schedule.
type runDetail struct {
	runRecord

	Attempt     int        `json:"attempt"`
	Ticks       int64      `json:"ticks"`
	Term        int64      `json:"term"`
	RetryAt     *time.Time `json:"retry_at"`
	OutputBytes int        `json:"output_bytes"`
	Output      string     `json:"output,omitempty"` // only of a single run
}

// processorDetail is what the page of a processor shows beside its record.
type processorDetail struct {
	DeadLetters []deadLetterRecord `json:"dead_letters"`
	Changes     []workChange       `json:"changes"`
	Lag         *lagRecord         `json:"lag"`  // null if no leader has measured it
	Lags        []lagPoint         `json:"lags"` // over time, oldest first
}

// deadLetterRecord is an event after it was set aside.
type deadLetterRecord struct {
	ID        string    `json:"id"` // a number, as text: it can be too large for a browser
	Event     string    `json:"event"`
	Error     string    `json:"error"`
	Attempts  int       `json:"attempts"`
	FailedAt  time.Time `json:"failed_at"`
	SkippedBy string    `json:"skipped_by,omitempty"`
	Replay    bool      `json:"replay"` // a replay was requested

	ReplayBy       string     `json:"replay_requested_by,omitempty"`
	ReplayFailedAt *time.Time `json:"replay_failed_at"` // null if the last replay did not fail, or waits

	DismissedBy string     `json:"dismissed_by,omitempty"`
	DismissedAt *time.Time `json:"dismissed_at"` // null if no operator dismissed it
}

// lagRecord is a measurement of a processor's lag.
type lagRecord struct {
	Behind    int64     `json:"behind"`
	Truncated bool      `json:"truncated"` // there are more
	Blocked   int64     `json:"blocked"`   // of them wait for older transactions
	Oldest    float64   `json:"oldest_wait_seconds"`
	AsOf      time.Time `json:"as_of"`
}

func runOf(r cron.Record) runDetail {
	return runDetail{
		runRecord: runRecord{
			ID: r.ID, State: string(r.State), For: r.ScheduledFor, Started: when(r.StartedAt), Ended: when(r.EndedAt), Manual: r.Manual,
			RequestedBy: r.RequestedBy, NodeName: r.NodeName, Error: r.Error,
		},
		Attempt: r.Attempt, Ticks: r.Ticks, Term: r.Term, RetryAt: when(r.RetryAt), OutputBytes: r.OutputBytes, Output: r.Output,
	}
}

func (d *Dashboard) getSchedule(w http.ResponseWriter, r *http.Request) {
	d.answerShared(w, r, "schedule", r.URL.Query().Get("name"), func(ctx context.Context, name string) (any, error) {
		runs, err := d.schedules.History(ctx, name, maxRunsShown)
		if err != nil {
			return nil, err
		}
		detail := scheduleDetail{Runs: []runDetail{}, Next: []time.Time{}, Changes: []workChange{}}
		for _, run := range runs {
			detail.Runs = append(detail.Runs, runOf(run))
		}
		// A schedule with an unreadable expression has no ticks; its record says why.
		if next, err := d.schedules.Next(ctx, name, maxTicksShown); err == nil {
			detail.Next = append(detail.Next, next...)
		}
		changes, err := d.schedules.Changes(ctx, name, maxWorkChanges)
		for _, c := range changes {
			detail.Changes = append(detail.Changes, workChange{c.At, c.By, c.Action, c.Detail})
		}
		return detail, err
	})
}

// getRun returns a run with its output.
func (d *Dashboard) getRun(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		refuse(w, http.StatusNotFound, "there is no such run")
		return
	}
	d.answerShared(w, r, "run", strconv.FormatInt(id, 10), func(ctx context.Context, _ string) (any, error) {
		run, err := d.schedules.Run(ctx, id)
		return runOf(run), err
	})
}

func (d *Dashboard) getProcessor(w http.ResponseWriter, r *http.Request) {
	d.answerShared(w, r, "processor", r.URL.Query().Get("name"), func(ctx context.Context, name string) (any, error) {
		letters, err := d.processors.DeadLetters(ctx, name, maxDeadLettersShown)
		if err != nil {
			return nil, err
		}
		detail := processorDetail{DeadLetters: []deadLetterRecord{}, Changes: []workChange{}, Lags: d.lags.of(name)}
		for _, l := range letters {
			detail.DeadLetters = append(detail.DeadLetters, deadLetterRecord{
				ID: strconv.FormatInt(l.ID, 10), Event: l.Event.String(), Error: l.Error, Attempts: l.Attempts, FailedAt: l.FailedAt,
				SkippedBy: l.SkippedBy, Replay: l.Replay, ReplayBy: l.ReplayBy, ReplayFailedAt: when(l.ReplayFailedAt), DismissedBy: l.DismissedBy, DismissedAt: when(l.DismissedAt),
			})
		}
		changes, err := d.processors.Changes(ctx, name, maxWorkChanges)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			detail.Changes = append(detail.Changes, workChange{c.At, c.By, c.Action, c.Detail})
		}
		lags, err := d.processors.Lag(ctx, name)
		if err == nil && len(lags) == 1 && !lags[0].AsOf.IsZero() {
			l := lags[0]
			detail.Lag = &lagRecord{l.Behind, l.Truncated, l.BlockedByHorizon, seconds(l.OldestWait), l.AsOf}
		}
		return detail, err
	})
}

// answerShared answers with the result of a shared read.
func (d *Dashboard) answerShared(w http.ResponseWriter, r *http.Request, kind, name string, read func(context.Context, string) (any, error)) {
	if d.processors == nil {
		refuse(w, http.StatusNotFound, "this dashboard has no database connection for processors and schedules")
		return
	}
	record, err := d.shared.get(r.Context(), kind+" "+name, func(ctx context.Context) (any, error) { return read(ctx, name) })
	var noProcessor *processor.UnknownError
	var noSchedule *cron.UnknownError
	var noRun *cron.UnknownRunError
	switch {
	case err == nil:
		answer(w, http.StatusOK, record)
	case errors.As(err, &noProcessor), errors.As(err, &noSchedule), errors.As(err, &noRun):
		refuse(w, http.StatusNotFound, "there is no "+kind+" of this name")
	default:
		d.log.Warn("the dashboard cannot read the database", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the database is not responding")
	}
}
