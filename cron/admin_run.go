package cron

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// UnknownRunError is returned if there is no run with this id. It matches
// tenure.ErrInvalidConfig.
type UnknownRunError struct{ ID int64 }

// Error names the run.
func (e *UnknownRunError) Error() string {
	return fmt.Sprintf("there is no run %d: it was removed, or is of another installation", e.ID)
}

// Unwrap returns tenure.ErrInvalidConfig.
func (e *UnknownRunError) Unwrap() error { return tenure.ErrInvalidConfig }

// Run returns one run, with its output. If it does not exist, the error is an
// [UnknownRunError].
func (m *Admin) Run(ctx context.Context, id int64) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var n nullableRecord
	var text string
	err := m.one(ctx, readRun, []any{id}, append(n.targets(), &text)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Record{}, &UnknownRunError{id}
	case err != nil:
		return Record{}, fmt.Errorf("read run %d: %w", id, err)
	}
	r := *n.record()
	r.Output = text
	return r, nil
}
