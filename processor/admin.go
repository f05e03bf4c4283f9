package processor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
)

// statementTimeout limits each query and each change. lettersTimeout limits a change of
// dead letters: there can be millions of them.
const (
	statementTimeout = 30 * time.Second
	lettersTimeout   = 10 * time.Minute
)

// Admin manages the processors of an installation, from any process, whether it
// leads or not. Every change is recorded with its requester. Each query and
// each change is limited to 30 s, a change of dead letters to 10 min, or less by its context. It is safe for
// concurrent use if its database is.
type Admin struct {
	tables   schema.Tables
	database Database
}

// tablesOf returns the tables of processors.
func tablesOf(backend *postgres.Backend, database Database) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: features.Processors, Database: database}
}

// NewAdmin returns an Admin for the processors in a backend's schema.
// database must be the backend's database; its user needs the privileges of
// [postgres.Backend.WorkGrants].
func NewAdmin(backend *postgres.Backend, database Database) *Admin {
	return &Admin{tables: tablesOf(backend, database), database: database}
}

// Pause keeps a processor from starting another batch. It returns when the
// batch in flight has ended or the role has no leader. If ctx ends first, the
// processor stays paused.
func (m *Admin) Pause(ctx context.Context, name, by string) error {
	if _, err := m.changeRow(ctx, name, by, "pause", pauseProcessor, name); err != nil {
		return err
	}
	for {
		s, err := m.Show(ctx, name)
		switch {
		case err == nil && (!s.Busy || !s.Led || s.Status != Paused):
			return nil
		case ctx.Err() != nil: // also during a read: the previous read saw a batch
			return fmt.Errorf("pause %s: a batch is still in flight: %w", name, context.Cause(ctx))
		case err != nil:
			return err
		}
		wakeup.Sleep(ctx, pausePoll)
	}
}

// pausePoll is the time between two reads while a processor is pausing.
const pausePoll = 20 * time.Millisecond

// Resume ends a pause.
func (m *Admin) Resume(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "resume", resumeProcessor, name)
	if errors.Is(err, errUnchanged) {
		return nil // it was not paused
	}
	return err
}

// Retry resets the failed attempts of a processor: the next attempt starts immediately. A
// failed processor becomes active. A pause stays. An attempt in flight still counts if it
// fails after the call.
func (m *Admin) Retry(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "retry", retryProcessor, name)
	return err
}

// Rewind moves a processor's cursor back or forward; the zero cursor is the
// start of the log. A failed processor becomes active; a pause stays. A batch in
// flight does not count. Events after the cursor are handled again, and their
// dead letters are removed. If no event can have the cursor yet, the error
// matches tenure.ErrInvalidConfig, because the processor would skip events.
func (m *Admin) Rewind(ctx context.Context, name string, to Cursor, by string) error {
	err := m.change(ctx, name, by, "rewind", func(ctx context.Context, tx pgx.Tx) (string, error) {
		transaction := fmt.Sprint(to.Transaction)
		detail, err := m.one(ctx, tx, rewindProcessor, name, transaction, to.Position)
		if err == nil {
			// A separate statement also sees the leader's changes before the lock.
			_, err = tx.Exec(ctx, m.tables.SQL(forgetDeadLetters), name, transaction, to.Position)
		}
		return detail, err
	})
	if errors.Is(err, errUnchanged) {
		return invalid("no event can be at %s yet: the processor %s would skip future events", to, name)
	}
	return err
}

// Rebuild requests a rebuild by the leader: in one transaction, it empties the processor's
// output and starts from the beginning of the log. If the role has no leader, the next
// leader does so. A failed processor becomes active then; a pause stays. If the processor
// has no Reset, the error matches tenure.ErrInvalidConfig.
func (m *Admin) Rebuild(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "rebuild", rebuildProcessor, name)
	if !errors.Is(err, errUnchanged) {
		return err
	}
	return invalid("the processor %s cannot be rebuilt: it has no Reset", name)
}

// errUnchanged is returned if there was nothing to change.
var errUnchanged = errors.New("nothing to change")

// changeRow runs a statement and records the change. The statement returns one row with
// the details of the change, or none if it changed nothing.
func (m *Admin) changeRow(ctx context.Context, name, by, action, sql string, args ...any) (detail string, err error) {
	err = m.change(ctx, name, by, action, func(ctx context.Context, tx pgx.Tx) (string, error) {
		var err error
		detail, err = m.one(ctx, tx, sql, args...)
		return detail, err
	})
	return detail, err
}

// one returns the text of a statement's row, or errUnchanged if there is no row.
func (m *Admin) one(ctx context.Context, tx pgx.Tx, sql string, args ...any) (text string, err error) {
	err = tx.QueryRow(ctx, m.tables.SQL(sql), args...).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errUnchanged
	}
	return text, err
}

// change changes a processor and, in the same transaction, records the change
// and notifies the leader. fn returns the details to record.
func (m *Admin) change(ctx context.Context, name, by, action string, fn func(context.Context, pgx.Tx) (detail string, err error)) error {
	return m.changeWithin(ctx, statementTimeout, name, by, action, fn)
}

// changeWithin is change with a time limit.
func (m *Admin) changeWithin(
	ctx context.Context, limit time.Duration, name, by, action string, fn func(context.Context, pgx.Tx) (detail string, err error),
) error {
	if strings.TrimSpace(by) == "" {
		return invalid("a change must name its requester")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if exist, err := m.tables.Exist(ctx); err != nil || !exist {
		return cmp.Or(err, m.unknown(ctx, name))
	}
	err := pgx.BeginTxFunc(ctx, m.database, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		detail, err := fn(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, m.tables.SQL(recordChange), by, name, action, detail, m.tables.Channel(""))
		return err
	})
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, errUnchanged):
		return fmt.Errorf("%s %s: %w", action, name, err)
	}
	if _, err := m.Show(ctx, name); err != nil {
		return err
	}
	return errUnchanged
}
