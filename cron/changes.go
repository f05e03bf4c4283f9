package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Change is a change of a schedule by an operator, or by its leader after the database's
// clock was ahead.
type Change struct {
	At       time.Time // by the database's clock
	By       string    // who
	Schedule string
	Action   string // trigger, backfill, pause, resume, add, change, reset or remove; or clock
	Detail   string // for example the id of the requested run; often empty
}

// Changes returns the latest changes, newest first, of one schedule or, if name is empty,
// of all. It also returns changes of removed schedules.
func (m *Admin) Changes(ctx context.Context, name string, limit int) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if limit < 1 {
		return nil, invalid("the limit is %d; it must be at least 1", limit)
	}
	rows, _ := m.tables.Query(ctx, readChanges, name, limit) // rows reports the error
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Change, err error) {
		return c, row.Scan(&c.At, &c.By, &c.Schedule, &c.Action, &c.Detail)
	})
	if err != nil {
		return nil, fmt.Errorf("read the changes: %w", err)
	}
	if len(changes) == 0 && name != "" {
		return nil, m.mustExist(ctx, name)
	}
	return changes, nil
}

// Remove deletes an operator's schedule, or one without a program's declaration, and its
// runs. by is the requester to record. Running jobs continue. If the leader of its role
// runs the schedule of a program, it would add it again; the error is then a
// [ConflictError]. If a program still has the schedule, it adds it as a new one when it
// next leads.
func (m *Admin) Remove(ctx context.Context, name, by string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := checkBy(by); err != nil {
		return err
	}
	var removed int
	err := m.one(ctx, removeSchedule, []any{name, by, m.tables.Channel("")}, &removed, nil)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if removed > 0 {
		return nil
	}
	if err := m.mustExist(ctx, name); err != nil {
		return err
	}
	return conflict("the leader of its role runs the schedule %s: remove it from the program first", name)
}
