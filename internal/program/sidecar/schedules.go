package sidecar

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/record"
)

// nothingBody is the body of a request that needs no more than its path.
type nothingBody struct{}

// addBody is a schedule to add.
type addBody struct {
	Schedule string `json:"schedule"`
	cron.Override
}

// backfillBody is a range of ticks.
type backfillBody struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// The shapes of bodies, in words.
const (
	nothingShape = "{}"
	rangeShape   = `{"from": "TIME", "to": "TIME"}, in RFC 3339`
	addShape     = `{"schedule": "NAME", "job": "SCHEDULE", "expression": "EXPRESSION"} with other settings`
	changeShape  = `of the settings to change, such as {"expression": "EXPRESSION"}`
)

// scheduleRoutes are the paths of schedules.
func (h *Handler) scheduleRoutes() (map[string]methods, []namedPath) {
	get := func(do workAnswer) methods { return methods{http.MethodGet: h.answerWork(schedules, workTimeout, do)} }
	post := func(do func(context.Context, *workRequest, nothingBody) (int, any, error)) methods {
		return methods{http.MethodPost: h.protected(changed(h, schedules, workTimeout, nothingShape, do))}
	}
	all := get(listSchedules)
	all[http.MethodPost] = h.protected(changed(h, schedules, workTimeout, addShape, addSchedule))
	one := get(showSchedule)
	one[http.MethodPatch] = h.protected(changed(h, schedules, workTimeout, changeShape, changeSchedule))
	one[http.MethodDelete] = h.protected(changed(h, schedules, workTimeout, nothingShape, removeSchedule))
	const prefix = "/v1/schedules/"
	return map[string]methods{"/v1/schedules": all}, []namedPath{
		{prefix, "name", "/runs", get(listRuns)},
		{prefix, "name", "/next", get(listTicks)},
		{prefix, "name", "/trigger", post(triggerSchedule)},
		{prefix, "name", "/backfill", methods{http.MethodPost: h.protected(changed(h, schedules, workTimeout, rangeShape, backfillSchedule))}},
		{prefix, "name", "/pause", post(pauseSchedule)},
		{prefix, "name", "/resume", post(resumeSchedule)},
		{prefix, "name", "/reset", post(resetSchedule)},
		{prefix, "name", "", one},
		// Output can be confidential.
		{"/v1/schedule-runs/", "name", "", methods{http.MethodGet: h.private(get(showRun)[http.MethodGet])}},
	}
}

func listSchedules(ctx context.Context, q *workRequest) (int, any, error) {
	statuses, err := q.schedules.List(ctx)
	return http.StatusOK, record.NewSchedules(statuses), err
}

// showSchedule also answers changes of a schedule, with the schedule after it.
func showSchedule(ctx context.Context, q *workRequest) (int, any, error) {
	return shownSchedule(ctx, q, q.name(), http.StatusOK)
}

func shownSchedule(ctx context.Context, q *workRequest, name string, status int) (int, any, error) {
	s, err := q.schedules.Show(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	return status, record.NewSchedule(s), nil
}

func listRuns(ctx context.Context, q *workRequest) (int, any, error) {
	most, err := q.count()
	if err != nil {
		return 0, nil, err
	}
	runs, err := q.schedules.History(ctx, q.name(), most)
	return http.StatusOK, record.NewRuns(q.name(), runs), err
}

func showRun(ctx context.Context, q *workRequest) (int, any, error) {
	id, err := strconv.ParseInt(q.name(), 10, 64)
	if err != nil || id < 1 {
		return 0, nil, &badInput{codeInvalidQuery, "the run must be the number of a run"}
	}
	r, err := q.schedules.Run(ctx, id)
	return http.StatusOK, record.RunWithOutput{Run: record.NewRun(r), Output: r.Output}, err
}

func listTicks(ctx context.Context, q *workRequest) (int, any, error) {
	most, err := q.count()
	if err != nil {
		return 0, nil, err
	}
	ticks, err := q.schedules.Next(ctx, q.name(), most)
	return http.StatusOK, record.NewScheduleTicks(q.name(), ticks), err
}

func triggerSchedule(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	id, err := q.schedules.Trigger(ctx, q.name(), q.by)
	return http.StatusAccepted, record.TriggeredSchedule{Schedule: q.name(), Run: id}, err
}

func backfillSchedule(ctx context.Context, q *workRequest, body backfillBody) (int, any, error) {
	done, err := q.schedules.Backfill(ctx, q.name(), body.From, body.To, q.by)
	return http.StatusAccepted, record.BackfilledSchedule{Schedule: q.name(), Ticks: done.Ticks, Runs: done.Runs}, err
}

func pauseSchedule(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	err := q.schedules.Pause(ctx, q.name(), q.by)
	return http.StatusOK, record.PausedSchedule{Schedule: q.name(), Paused: true}, err
}

func resumeSchedule(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	err := q.schedules.Resume(ctx, q.name(), q.by)
	return http.StatusOK, record.PausedSchedule{Schedule: q.name()}, err
}

func addSchedule(ctx context.Context, q *workRequest, body addBody) (int, any, error) {
	if err := q.schedules.Add(ctx, body.Schedule, body.Override, q.by); err != nil {
		return 0, nil, err
	}
	return shownSchedule(ctx, q, body.Schedule, http.StatusCreated)
}

func changeSchedule(ctx context.Context, q *workRequest, body cron.Override) (int, any, error) {
	if err := q.schedules.Change(ctx, q.name(), body, q.by); err != nil {
		return 0, nil, err
	}
	return showSchedule(ctx, q)
}

func resetSchedule(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	if err := q.schedules.Reset(ctx, q.name(), q.by); err != nil {
		return 0, nil, err
	}
	return showSchedule(ctx, q)
}

func removeSchedule(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	err := q.schedules.Remove(ctx, q.name(), q.by)
	return http.StatusOK, record.RemovedSchedule{Removed: q.name()}, err
}
