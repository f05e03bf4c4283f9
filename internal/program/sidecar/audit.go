package sidecar

import (
	"context"
	"net/http"

	"github.com/exactly-one/tenure/internal/program/record"
)

// auditRoutes are the paths of the actions of operators.
func (h *Handler) auditRoutes() (map[string]methods, []namedPath) {
	return map[string]methods{"/v1/audit": {http.MethodGet: h.answerWork(schedules, workTimeout, listAudit)}}, nil
}

func listAudit(ctx context.Context, q *workRequest) (int, any, error) {
	most, err := q.count()
	if err != nil {
		return 0, nil, err
	}
	entries, err := q.audit(ctx, most)
	return http.StatusOK, record.NewAudit(entries), err
}
