package cron

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/printable"
)

// recordTimeout bounds the attempt to record a failure: the database may be out of reach.
const recordTimeout = 5 * time.Second

// failures are the reasons why schedules cannot work, as their rows show them.
type failures struct {
	recorded   bool              // rows show failures, perhaps of an earlier term
	recordedAt time.Time         // in this term
	count      int               // failed steps since then
	invalid    map[string]string // errors of schedules with settings that are invalid here
	shown      map[string]string // the part of invalid shown by rows
}

// recordFailure records the failure of the role's schedules to work, at most once per
// PollInterval. If even the record fails, they are overdue.
func (l *loop) recordFailure(ctx context.Context, failure error) {
	l.failures.count++
	if time.Since(l.failures.recordedAt) < l.config.PollInterval {
		return
	}
	l.failures.recordedAt = time.Now()
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(markFailing), l.term.Role().Name(), l.failures.count, printable.Clip(failure.Error(), maxError))
		return err
	})
	if err != nil {
		l.log.Debug("a failure of the schedules was not recorded", "error", err)
		return
	}
	l.failures.recorded, l.failures.count = true, 0
}

// recordWorking removes recorded failures when the schedules work. It records the failures
// of schedules with invalid settings.
func (l *loop) recordWorking(ctx context.Context) error {
	if !l.schedulesKnown || !l.failures.recorded && maps.Equal(l.failures.invalid, l.failures.shown) {
		return nil
	}
	names := slices.AppendSeq([]string{}, maps.Keys(l.failures.invalid)) // never nil, which would be NULL in SQL
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = printable.Clip(l.failures.invalid[name], maxError)
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.tables.SQL(markWorking), l.term.Role().Name(), names); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.tables.SQL(markInvalid), l.term.Role().Name(), names, texts)
		return err
	})
	if err != nil {
		return fmt.Errorf("record that the schedules work: %w", err)
	}
	l.failures = failures{invalid: l.failures.invalid, shown: maps.Clone(l.failures.invalid)}
	return nil
}

const (
	markFailing = `
UPDATE {schedules}
SET errors = errors + $2, last_error = $3, failing_since = coalesce(failing_since, clock_timestamp())
WHERE role = $1`

	markWorking = `
UPDATE {schedules}
SET errors = 0, last_error = '', failing_since = NULL
WHERE role = $1 AND failing_since IS NOT NULL AND name <> ALL ($2::text[])`

	markInvalid = `
UPDATE {schedules} s
SET errors = s.errors + 1, last_error = i.error, failing_since = coalesce(s.failing_since, clock_timestamp())
FROM unnest($2::text[], $3::text[]) AS i(name, error)
WHERE s.role = $1 AND s.name = i.name`
)
