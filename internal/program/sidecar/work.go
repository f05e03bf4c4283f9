package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/audit"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// The bounds on requests about schedules and processors.
const (
	maxWork     = 4                // at a time, for the sake of others who use the pool
	workTimeout = 10 * time.Second // for the database, and for a turn
	defaultRows = 20
	maxRows     = 1000
)

// work are the schedules and processors of the installation, and who changed them.
type work struct {
	schedules  *cron.Admin
	processors *processor.Admin
	audit      func(ctx context.Context, limit int) ([]audit.Entry, error)
	turns      chan struct{}
}

// newWork returns nil if the node has no pool or its database keeps leases.
func newWork(backend tenure.Backend, database *pgxpool.Pool) *work {
	sessions, ok := backend.(*postgres.Backend)
	if !ok || database == nil {
		return nil
	}
	return &work{
		schedules: cron.NewAdmin(sessions, database), processors: processor.NewAdmin(sessions, database), turns: make(chan struct{}, maxWork),
		audit: func(ctx context.Context, limit int) ([]audit.Entry, error) {
			return audit.Read(ctx, sessions, database, "", limit)
		},
	}
}

// workRequest is a request about schedules or processors.
type workRequest struct {
	*work

	http    *http.Request
	timeout time.Duration
	by      string // who asks, for the record
}

// name returns the name in the path.
func (q *workRequest) name() string { return q.http.PathValue("name") }

// workAnswer is the answer to a request: the status and the record.
type workAnswer func(ctx context.Context, q *workRequest) (status int, record any, err error)

// subject is the subject of a request: schedules or processors.
type subject struct {
	invalid int    // the status if the administration refuses valid input
	code    string // of that
}

var (
	schedules  = subject{http.StatusBadRequest, codeInvalidSettings}
	processors = subject{http.StatusConflict, codeConflict} // its input was checked before
)

// badInput is an unusable part of a request.
type badInput struct{ code, reason string }

func (e *badInput) Error() string { return e.reason }

// answerWork answers a request about schedules or processors.
func (h *Handler) answerWork(about subject, timeout time.Duration, do workAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m, ok := h.present(w)
		if !ok {
			return
		}
		if m.work == nil {
			refuse(w, http.StatusNotImplemented, codeNoWork, "this node does not serve schedules and processors: ask tenure serve on PostgreSQL without leases")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		select {
		case m.work.turns <- struct{}{}:
			defer func() { <-m.work.turns }()
		case <-ctx.Done():
			h.refuseWork(w, r, about, ctx.Err())
			return
		}
		if timeout > workTimeout {
			extend(w, timeout)
		}
		status, record, err := do(ctx, &workRequest{m.work, r, timeout, whoAsks(r)})
		if err != nil {
			h.refuseWork(w, r, about, err)
			return
		}
		answer(w, status, record)
	}
}

// changed is asked for a request with a change. The body is read before.
func changed[T any](h *Handler, about subject, timeout time.Duration, shape string, do func(ctx context.Context, q *workRequest, body T) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := readBody[T](w, r, shape)
		if !ok {
			return
		}
		h.answerWork(about, timeout, func(ctx context.Context, q *workRequest) (int, any, error) {
			h.config.Logger.Info("a client requested a change of a schedule or a processor over HTTP", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr)
			return do(ctx, q, body)
		})(w, r)
	}
}

// refuseWork answers why a request about schedules or processors failed.
func (h *Handler) refuseWork(w http.ResponseWriter, r *http.Request, about subject, err error) {
	var noSchedule *cron.UnknownError
	var noRun *cron.UnknownRunError
	var noProcessor *processor.UnknownError
	var conflict *cron.ConflictError
	var input *badInput
	reason := strings.ReplaceAll(err.Error(), tenure.ErrInvalidConfig.Error()+": ", "")
	switch {
	case errors.As(err, &noSchedule):
		refuse(w, http.StatusNotFound, codeUnknownSchedule, reason)
	case errors.As(err, &noRun):
		refuse(w, http.StatusNotFound, codeUnknownRun, reason)
	case errors.As(err, &noProcessor):
		refuse(w, http.StatusNotFound, codeUnknownProcessor, reason)
	case errors.As(err, &input):
		refuse(w, http.StatusBadRequest, input.code, reason)
	case errors.As(err, &conflict):
		refuse(w, http.StatusConflict, codeConflict, reason)
	case errors.Is(err, tenure.ErrInvalidConfig):
		refuse(w, about.invalid, about.code, reason)
	default:
		h.config.Logger.Warn("a request about schedules or processors failed", "method", r.Method, "path", r.URL.Path, "error", err)
		refuse(w, http.StatusServiceUnavailable, codeDatabase, "the database rejected the request: see the log of the node")
	}
}

// extend moves the bounds on a request for a longer answer. Where they cannot be moved
// the answer is cut.
func extend(w http.ResponseWriter, timeout time.Duration) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(timeout + responseTimeout))
}

// count returns how many rows a query asks for.
func (q *workRequest) count() (int, error) {
	query := q.http.URL.Query()
	if !query.Has("count") {
		return defaultRows, nil
	}
	n, err := strconv.Atoi(query.Get("count"))
	if err != nil || n < 1 || n > maxRows {
		return 0, &badInput{codeInvalidQuery, fmt.Sprintf("count must be a number between 1 and %d", maxRows)}
	}
	return n, nil
}
