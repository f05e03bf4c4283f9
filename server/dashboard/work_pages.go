package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// Bounds on the contents of the page of a processor or a schedule.
const (
	maxRunsShown        = 100
	maxTicksShown       = 10
	maxDeadLettersShown = 200
	maxWorkChanges      = 50
)

// scheduleDetail is what the page of a schedule shows beside its record.
type scheduleDetail struct {
	Runs    []record.Run            `json:"runs"` // the latest first
	Next    []record.Time           `json:"next"` // the next ticks; empty if it is paused
	Changes []record.OperatorChange `json:"changes"`
}

// processorDetail is what the page of a processor shows beside its record.
type processorDetail struct {
	DeadLetters []record.DeadLetter     `json:"dead_letters"`
	Changes     []record.OperatorChange `json:"changes"`
	Lag         *record.Lag             `json:"lag"`  // null if no leader has measured it
	Lags        []lagPoint              `json:"lags"` // over time, oldest first
}

func (d *Dashboard) getSchedule(w http.ResponseWriter, r *http.Request) {
	d.answerShared(w, r, "schedule", r.URL.Query().Get("name"), func(ctx context.Context, name string) (any, error) {
		runs, err := d.schedules.History(ctx, name, maxRunsShown)
		if err != nil {
			return nil, err
		}
		detail := scheduleDetail{Runs: record.NewRuns(name, runs).Runs, Next: []record.Time{}}
		// A schedule with an unreadable expression has no ticks; its record says why.
		if next, err := d.schedules.Next(ctx, name, maxTicksShown); err == nil {
			for _, at := range next {
				detail.Next = append(detail.Next, record.Time(at))
			}
		}
		changes, err := d.schedules.Changes(ctx, name, maxWorkChanges)
		detail.Changes = record.NewScheduleChanges(changes)
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
		return record.RunWithOutput{Run: record.NewRun(run), Output: run.Output}, err
	})
}

func (d *Dashboard) getProcessor(w http.ResponseWriter, r *http.Request) {
	d.answerShared(w, r, "processor", r.URL.Query().Get("name"), func(ctx context.Context, name string) (any, error) {
		letters, err := d.processors.DeadLetters(ctx, name, maxDeadLettersShown)
		if err != nil {
			return nil, err
		}
		changes, err := d.processors.Changes(ctx, name, maxWorkChanges)
		if err != nil {
			return nil, err
		}
		detail := processorDetail{
			DeadLetters: record.NewDeadLetters(name, letters).DeadLetters, Changes: record.NewProcessorChanges(changes), Lags: d.lags.of(name),
		}
		lags, err := d.processors.Lag(ctx, name)
		if err == nil && len(lags) == 1 && !lags[0].AsOf.IsZero() {
			lag := record.NewLag(lags[0])
			detail.Lag = &lag
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
	found, err := d.shared.get(r.Context(), kind+" "+name, func(ctx context.Context) (any, error) { return read(ctx, name) })
	var noProcessor *processor.UnknownError
	var noSchedule *cron.UnknownError
	var noRun *cron.UnknownRunError
	switch {
	case err == nil:
		answer(w, http.StatusOK, found)
	case errors.As(err, &noProcessor), errors.As(err, &noSchedule), errors.As(err, &noRun):
		refuse(w, http.StatusNotFound, "there is no "+kind+" of this name")
	default:
		d.log.Warn("the dashboard cannot read the database", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the database is not responding")
	}
}
