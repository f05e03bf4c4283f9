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
	"github.com/exactly-one/tenure/postgres"
)

// statementTimeout bounds a question, and a change.
const statementTimeout = 30 * time.Second

// Admin is what people, and programs for them, may do to the processors of
// an installation, from any process, whether it leads or not. Every change is
// recorded with who made it. It is safe for concurrent use if its database is.
// Each question and each change is bounded by 30 s, or sooner by its context.
type Admin struct {
	tables   schema.Tables
	database Database
}

// tablesOf returns the tables of processors.
func tablesOf(backend *postgres.Backend, database Database) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: features.Processors, Database: database}
}

// NewManagement manages the processors in the schema of a backend, in the
// database that the backend is on. The database's user needs the privileges of
// [postgres.Backend.WorkGrants].
func NewManagement(backend *postgres.Backend, database Database) *Admin {
	return &Admin{tables: tablesOf(backend, database), database: database}
}

// Pause keeps a processor from taking another batch, and returns when the batch
// in flight has ended, or nobody leads. If the context ends before, the pause
// stands all the same.
func (m *Admin) Pause(ctx context.Context, name, by string) error {
	if _, err := m.changeRow(ctx, name, by, "pause", pauseProcessor, name); err != nil {
		return err
	}
	for {
		s, err := m.Show(ctx, name)
		switch {
		case err == nil && (!s.Busy || !s.Led || s.Status != Paused):
			return nil
		case ctx.Err() != nil: // also while it was looked at: the last look saw a batch
			return fmt.Errorf("pausing %s: a batch is still in flight: %w", name, context.Cause(ctx))
		case err != nil:
			return err
		}
		sleep(ctx, pausePoll)
	}
}

// pausePoll is the time between two looks at a processor that is being paused.
const pausePoll = 20 * time.Millisecond

// Resume ends a pause.
func (m *Admin) Resume(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "resume", resumeProcessor, name)
	if errors.Is(err, errUnchanged) {
		return nil // it was not paused
	}
	return err
}

// Retry forgets the failed attempts of a processor, so that the next one is made
// at once; one that has failed works again. A pause stays.
func (m *Admin) Retry(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "retry", retryProcessor, name)
	return err
}

// Rewind moves a processor's cursor, back or forth; the zero cursor is the start
// of the log. A batch in flight does not count. What was done already is done
// again, and dead letters behind the place are forgotten, since they are handled
// again. A place that no event can have yet is refused with an error that
// matches tenure.ErrInvalidConfig: the processor would pass over events.
func (m *Admin) Rewind(ctx context.Context, name string, to Cursor, by string) error {
	err := m.change(ctx, name, by, "rewind", func(ctx context.Context, tx pgx.Tx) (string, error) {
		transaction := fmt.Sprint(to.Transaction)
		detail, err := m.one(ctx, tx, rewindProcessor, name, transaction, to.Position)
		if err == nil {
			// A statement of its own, which sees what the leader did until now.
			_, err = tx.Exec(ctx, m.tables.SQL(forgetDeadLetters), name, transaction, to.Position)
		}
		return detail, err
	})
	if errors.Is(err, errUnchanged) {
		return invalid("no event can be at %s yet: the processor %s would pass over those to come", to, name)
	}
	return err
}

// Rebuild has the leader empty what the processor fills and begin at the start,
// in one transaction; if nobody leads, as soon as somebody does. A processor
// that cannot be emptied is refused with an error that matches
// tenure.ErrInvalidConfig.
func (m *Admin) Rebuild(ctx context.Context, name, by string) error {
	_, err := m.changeRow(ctx, name, by, "rebuild", rebuildProcessor, name)
	if !errors.Is(err, errUnchanged) {
		return err
	}
	return invalid("the processor %s cannot be rebuilt: it does not say how to empty what it fills", name)
}

// errUnchanged says that a change found nothing to change.
var errUnchanged = errors.New("nothing to change")

// changeRow runs a statement that returns one row, with what is worth recording
// of the change, if it changed something, and records it.
func (m *Admin) changeRow(ctx context.Context, name, by, action, sql string, args ...any) (detail string, err error) {
	err = m.change(ctx, name, by, action, func(ctx context.Context, tx pgx.Tx) (string, error) {
		var err error
		detail, err = m.one(ctx, tx, sql, args...)
		return detail, err
	})
	return detail, err
}

// one runs a statement that returns one text, or errUnchanged if it returns none.
func (m *Admin) one(ctx context.Context, tx pgx.Tx, sql string, args ...any) (text string, err error) {
	err = tx.QueryRow(ctx, m.tables.SQL(sql), args...).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errUnchanged
	}
	return text, err
}

// change changes something of a processor, and in the same transaction records
// it and tells the leader. The function returns what is worth recording.
func (m *Admin) change(ctx context.Context, name, by, action string, fn func(context.Context, pgx.Tx) (detail string, err error)) error {
	if strings.TrimSpace(by) == "" {
		return invalid("a change must say who makes it")
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
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
