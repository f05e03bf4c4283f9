package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// ConflictError is returned if a change is valid but does not fit the present
// state of a schedule. It matches tenure.ErrInvalidConfig.
type ConflictError struct{ Reason string }

// Error returns the reason.
func (e *ConflictError) Error() string { return e.Reason }

// Unwrap returns tenure.ErrInvalidConfig.
func (e *ConflictError) Unwrap() error { return tenure.ErrInvalidConfig }

func conflict(format string, args ...any) error { return &ConflictError{fmt.Sprintf(format, args...)} }

// Add adds a schedule to run the job of a program's schedule, o.Job, at other times. It
// needs an expression; fields missing in o are as in the program's schedule. It ticks from
// now on, on leaders with the job in their program. by is the requester to record. If the
// name is taken, the error is a [ConflictError].
func (m *Admin) Add(ctx context.Context, name string, o Override, by string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	switch {
	case by == "":
		return checkBy(by)
	case o.Job == "":
		return invalid("the schedule %s has no job: name the schedule whose job it runs", name)
	case o.Expression == "":
		return invalid("the schedule %s has no expression", name)
	}
	source, err := m.Show(ctx, o.Job)
	if err != nil {
		return err
	}
	if source.Override != nil && source.Override.Job != "" {
		return invalid("an operator added the schedule %s: name the one whose job it runs, %s", o.Job, source.Override.Job)
	}
	source.Name = name
	next, err := newTimes(source.Schedule, o, o)
	if err != nil {
		return err
	}
	added, err := m.count(ctx, addSchedule, name, o.Job, next.expression, next.zone, next.settings, next.override, time.Now(), by, m.tables.Channel(""))
	if err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	if added == 0 {
		if err := m.mustExist(ctx, o.Job); err != nil {
			return err // it was removed at the same time
		}
		return conflict("there is already a schedule %s", name)
	}
	return nil
}

// Change sets a part of a schedule: the fields set in o replace the program's declaration
// and earlier settings of operators. A schedule with a new expression or zone ticks by it
// from now on. by is the requester to record. If the schedule is changed at the same time,
// the error is a [ConflictError].
func (m *Admin) Change(ctx context.Context, name string, o Override, by string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	switch {
	case by == "":
		return checkBy(by)
	case o.Job != "":
		return invalid("the job of the schedule %s cannot be changed: add another schedule", name)
	case o == Override{}:
		return invalid("no change was given for the schedule %s", name)
	}
	current, err := m.Show(ctx, name)
	if err != nil {
		return err
	}
	before, set, err := current.set()
	if err != nil {
		return err
	}
	next, err := newTimes(current.Schedule, o, set.with(o))
	if err != nil {
		return err
	}
	detail, err := o.encode()
	if err != nil {
		return err
	}
	changed, err := m.count(ctx, changeSchedule, name, next.expression, next.zone, next.settings, next.override, by,
		before, current.Expression, current.Zone, detail, m.tables.Channel(""), time.Now())
	if err != nil {
		return fmt.Errorf("change %s: %w", name, err)
	}
	if changed == 0 {
		if err := m.mustExist(ctx, name); err != nil {
			return err
		}
		return conflict("the schedule %s was changed at the same time: read it and repeat the change", name)
	}
	return nil
}

// Reset removes the operators' settings of a program's schedule: the leader returns to the
// program's declaration. If nothing was set, nothing changes. A schedule added by an
// operator has nothing to return to; the error is then a [ConflictError].
func (m *Admin) Reset(ctx context.Context, name, by string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := checkBy(by); err != nil {
		return err
	}
	changed, err := m.count(ctx, resetSchedule, name, by, m.tables.Channel(""))
	if err != nil {
		return fmt.Errorf("reset %s: %w", name, err)
	}
	if changed > 0 {
		return nil
	}
	s, err := m.Show(ctx, name)
	if err == nil && s.Override != nil && s.Override.Job != "" {
		return conflict("an operator added the schedule %s: remove it instead", name)
	}
	return err
}

// set returns the operators' settings of a schedule, and the same as stored; nil if there
// are none.
func (s Status) set() (stored *string, o Override, err error) {
	if s.Override == nil {
		return nil, Override{}, nil
	}
	text, err := s.Override.encode()
	return &text, *s.Override, err
}

// times are the columns of a schedule set by an operator.
type times struct{ expression, zone, settings, override string }

// newTimes returns the columns of a schedule after a change. set has all settings of
// operators after the change.
func newTimes(s Schedule, change, set Override) (t times, err error) {
	parsed, err := change.apply(s.withDefaults()).parseTimes()
	if err != nil {
		return times{}, err
	}
	t.expression, t.zone = parsed.expression.String(), parsed.Zone
	if t.settings, err = parsed.encodeSettings(); err != nil {
		return times{}, err
	}
	t.override, err = set.encode()
	return t, err
}

// count runs a statement and returns its number of changed schedules.
func (m *Admin) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = m.one(ctx, sql, args, &n, nil)
	if errors.Is(err, pgx.ErrNoRows) { // there are no tables
		return 0, nil
	}
	return n, err
}
