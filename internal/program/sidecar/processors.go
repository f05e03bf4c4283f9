package sidecar

import (
	"context"
	"net/http"
	"time"

	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// How long a pause waits for the batch in flight, and how long a repair may take.
const (
	pauseTimeout  = 30 * time.Second
	repairTimeout = time.Hour
)

// The shapes of bodies, in words.
const (
	skipShape    = `{} or {"at": "TRANSACTION:POSITION"}`
	lettersShape = `{"ids": [ID, ...]} or {"all": true}`
	rewindShape  = `{"to": "start"} or {"to": "TRANSACTION:POSITION"}`
)

// skipBody is the body of a request to skip an event.
type skipBody struct {
	At string `json:"at"` // the event; empty for the one that fails now
}

// lettersBody selects dead letters to replay or dismiss.
type lettersBody struct {
	IDs []int64 `json:"ids"`
	All bool    `json:"all"`
}

// check returns an error unless the body has either ids or all.
func (b lettersBody) check() error {
	if b.All == (len(b.IDs) > 0) {
		return &badInput{codeInvalidBody, "name dead letters by their ids, or send " + `{"all": true}`}
	}
	return nil
}

// rewindBody says where to rewind to.
type rewindBody struct {
	To string `json:"to"`
}

// processorRoutes are the paths of processors.
func (h *Handler) processorRoutes() (map[string]methods, []namedPath) {
	get := func(do workAnswer) methods {
		return methods{http.MethodGet: h.answerWork(processors, workTimeout, do)}
	}
	post := func(handle http.HandlerFunc) methods { return methods{http.MethodPost: h.protected(handle)} }
	simple := func(timeout time.Duration, do func(context.Context, *workRequest, nothingBody) (int, any, error)) methods {
		return post(changed(h, processors, timeout, nothingShape, do))
	}
	const prefix = "/v1/processors/"
	return map[string]methods{
			"/v1/processors":    get(listProcessors),
			"/v1/processor-lag": get(readLag),
		}, []namedPath{
			{prefix, "name", "/dead-letters", get(listDeadLetters)},
			{prefix, "name", "/pause", simple(pauseTimeout+workTimeout, h.pauseProcessor)},
			{prefix, "name", "/resume", simple(workTimeout, changedProcessor(http.StatusOK, (*processor.Admin).Resume))},
			{prefix, "name", "/retry", simple(workTimeout, changedProcessor(http.StatusOK, (*processor.Admin).Retry))},
			{prefix, "name", "/rebuild", simple(workTimeout, changedProcessor(http.StatusAccepted, (*processor.Admin).Rebuild))},
			{prefix, "name", "/repair", simple(repairTimeout, repairLog)},
			{prefix, "name", "/skip", post(changed(h, processors, workTimeout, skipShape, skipEvent))},
			{prefix, "name", "/replay", post(changed(h, processors, workTimeout, lettersShape, replayLetters))},
			{prefix, "name", "/dismiss", post(changed(h, processors, workTimeout, lettersShape, dismissLetters))},
			{prefix, "name", "/rewind", post(changed(h, processors, workTimeout, rewindShape, rewindProcessor))},
			{prefix, "name", "", get(func(ctx context.Context, q *workRequest) (int, any, error) {
				return shownProcessor(ctx, q, http.StatusOK)
			})},
		}
}

func listProcessors(ctx context.Context, q *workRequest) (int, any, error) {
	statuses, err := q.processors.List(ctx)
	return http.StatusOK, record.NewProcessors(statuses), err
}

func shownProcessor(ctx context.Context, q *workRequest, status int) (int, any, error) {
	s, err := q.processors.Show(ctx, q.name())
	if err != nil {
		return 0, nil, err
	}
	return status, record.NewProcessor(s), nil
}

func readLag(ctx context.Context, q *workRequest) (int, any, error) {
	lags, err := q.processors.Lag(ctx, q.http.URL.Query()["processor"]...)
	if err != nil {
		return 0, nil, err
	}
	horizon, err := q.processors.Horizon(ctx)
	return http.StatusOK, record.NewLags(lags, horizon), err
}

func listDeadLetters(ctx context.Context, q *workRequest) (int, any, error) {
	most, err := q.count()
	if err != nil {
		return 0, nil, err
	}
	letters, err := q.processors.DeadLetters(ctx, q.name(), most)
	return http.StatusOK, record.NewDeadLetters(q.name(), letters), err
}

// changedProcessor answers a change with the processor after it.
func changedProcessor(status int, change func(admin *processor.Admin, ctx context.Context, name, by string) error) func(context.Context, *workRequest, nothingBody) (int, any, error) {
	return func(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
		if err := change(q.processors, ctx, q.name(), q.by); err != nil {
			return 0, nil, err
		}
		return shownProcessor(ctx, q, status)
	}
}

// pauseProcessor answers 202 if the batch in flight has not ended in time.
func (h *Handler) pauseProcessor(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	waiting, cancel := context.WithTimeout(ctx, h.pauseWait)
	defer cancel()
	err := q.processors.Pause(waiting, q.name(), q.by)
	if err == nil {
		return shownProcessor(ctx, q, http.StatusOK)
	}
	if waiting.Err() == nil {
		return 0, nil, err
	}
	if s, reading := q.processors.Show(ctx, q.name()); reading != nil || s.Status != processor.Paused {
		return 0, nil, err
	}
	return shownProcessor(ctx, q, http.StatusAccepted)
}

func skipEvent(ctx context.Context, q *workRequest, body skipBody) (int, any, error) {
	var at processor.Cursor
	if body.At != "" {
		var err error
		if at, err = record.ParseEvent(body.At); err != nil {
			return 0, nil, &badInput{codeInvalidBody, "at: " + err.Error()}
		}
	}
	skipped, err := q.processors.Skip(ctx, q.name(), at, q.by)
	return http.StatusOK, record.SkippedEvent{Processor: q.name(), Skipped: skipped.String()}, err
}

func replayLetters(ctx context.Context, q *workRequest, body lettersBody) (int, any, error) {
	if err := body.check(); err != nil {
		return 0, nil, err
	}
	n, err := q.processors.Replay(ctx, q.name(), body.IDs, q.by)
	return http.StatusAccepted, record.ReplayedLetters{Processor: q.name(), Replaying: n}, err
}

func dismissLetters(ctx context.Context, q *workRequest, body lettersBody) (int, any, error) {
	if err := body.check(); err != nil {
		return 0, nil, err
	}
	n, err := q.processors.Dismiss(ctx, q.name(), body.IDs, q.by)
	return http.StatusOK, record.DismissedLetters{Processor: q.name(), Dismissed: n}, err
}

func rewindProcessor(ctx context.Context, q *workRequest, body rewindBody) (int, any, error) {
	to, err := record.ParsePlace(body.To)
	if err != nil {
		return 0, nil, &badInput{codeInvalidBody, "to: " + err.Error()}
	}
	if err := q.processors.Rewind(ctx, q.name(), to, q.by); err != nil {
		return 0, nil, err
	}
	return shownProcessor(ctx, q, http.StatusOK)
}

func repairLog(ctx context.Context, q *workRequest, _ nothingBody) (int, any, error) {
	repaired, err := q.processors.Repair(ctx, q.name(), q.by)
	return http.StatusOK, record.NewRepairedLog(repaired), err
}
