package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// Management is what people, and programs for them, may do to the processors of
// an installation, from any process, whether it leads or not. Every change is
// recorded with who made it. It is safe for concurrent use if its database is.
type Management struct {
	backend  *postgres.Backend
	database Database
}

// NewManagement manages the processors in the schema of a backend.
func NewManagement(backend *postgres.Backend, database Database) *Management {
	return &Management{backend: backend, database: database}
}

// Status is how a processor is doing.
type Status struct {
	Name, Kind, Role string
	Status           string // active, paused or failed
	Cursor           Cursor // everything up to here is done
	Term             int64  // the last one under which it ran
	NodeID           uuid.UUID
	NodeName         string
	Led              bool // its node leads under that term now
	Busy             bool // a batch may be in flight
	Rebuilding       bool // a rebuild was asked for and has not begun
	Processed        int64
	Behind           int64     // events that waited when the leader looked last
	WaitingSince     time.Time // when the first of them occurred; zero if none
	Errors           int       // failed attempts in a row
	LastError        string
	LastErrorAt      time.Time // zero if there was none
	NextAttemptAt    time.Time // zero if nothing failed
	DeadLetters      int       // that were not replayed
	UpdatedAt        time.Time
}

// UnknownError says that there is no processor of a name. It matches
// tenure.ErrInvalidConfig.
type UnknownError struct {
	Name  string
	Known []string // those that there are
}

func (e *UnknownError) Error() string { return fmt.Sprintf("there is no processor %q", e.Name) }
func (e *UnknownError) Unwrap() error { return tenure.ErrInvalidConfig }

// List returns the named processors, or all if none is named, ordered by name.
func (m *Management) List(ctx context.Context, names ...string) ([]Status, error) {
	rows, err := m.database.Query(ctx, m.backend.SQL(listProcessors), append([]string{}, names...))
	if err != nil {
		return nil, fmt.Errorf("list processors: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanStatus)
	if err != nil {
		return nil, fmt.Errorf("list processors: %w", err)
	}
	return all, nil
}

func scanStatus(row pgx.CollectableRow) (Status, error) {
	var (
		s                                   Status
		transaction                         int64
		node                                *uuid.UUID
		waitingSince, lastErrorAt, nextTime *time.Time
	)
	err := row.Scan(&s.Name, &s.Kind, &s.Role, &s.Status, &transaction, &s.Cursor.Position, &s.Term, &node, &s.NodeName,
		&s.Led, &s.Busy, &s.Rebuilding, &s.Processed, &s.Behind, &waitingSince, &s.Errors, &s.LastError, &lastErrorAt,
		&nextTime, &s.DeadLetters, &s.UpdatedAt)
	s.Cursor.Transaction = uint64(transaction)
	if node != nil {
		s.NodeID = *node
	}
	for from, to := range map[**time.Time]*time.Time{&waitingSince: &s.WaitingSince, &lastErrorAt: &s.LastErrorAt, &nextTime: &s.NextAttemptAt} {
		if *from != nil {
			*to = **from
		}
	}
	return s, err
}

// Show returns one processor. The error for an unknown one is an *UnknownError,
// as that of the other methods.
func (m *Management) Show(ctx context.Context, name string) (Status, error) {
	found, err := m.List(ctx, name)
	if err != nil {
		return Status{}, err
	}
	if len(found) == 0 {
		return Status{}, m.unknown(ctx, name)
	}
	return found[0], nil
}

func (m *Management) unknown(ctx context.Context, name string) error {
	all, err := m.List(ctx)
	if err != nil {
		return err
	}
	unknown := &UnknownError{Name: name}
	for _, s := range all {
		unknown.Known = append(unknown.Known, s.Name)
	}
	return unknown
}

// Pause keeps a processor from taking another batch, and returns when the batch
// in flight has ended, or nobody leads. If the context ends before, the pause
// stands all the same.
func (m *Management) Pause(ctx context.Context, name, by string) error {
	if err := m.change(ctx, name, by, "pause", "", pauseProcessor, name); err != nil {
		return err
	}
	for {
		s, err := m.Show(ctx, name)
		if err != nil {
			return err
		}
		if !s.Busy || !s.Led || s.Status != Paused {
			return nil
		}
		if sleep(ctx, pausePoll); ctx.Err() != nil {
			return fmt.Errorf("pausing %s: a batch is still in flight: %w", name, context.Cause(ctx))
		}
	}
}

// pausePoll is the time between two looks at a processor that is being paused.
const pausePoll = 20 * time.Millisecond

// Resume ends a pause.
func (m *Management) Resume(ctx context.Context, name, by string) error {
	err := m.change(ctx, name, by, "resume", "", resumeProcessor, name)
	if errors.Is(err, errUnchanged) {
		return nil // it was not paused
	}
	return err
}

// Retry forgets the failed attempts of a processor, so that the next one is made
// at once; one that has failed works again. A pause stays.
func (m *Management) Retry(ctx context.Context, name, by string) error {
	return m.change(ctx, name, by, "retry", "", retryProcessor, name)
}

// Rewind moves a processor's cursor, back or forth; the zero cursor is the start
// of the log. A batch in flight does not count. What was done already is done
// again.
func (m *Management) Rewind(ctx context.Context, name string, to Cursor, by string) error {
	return m.change(ctx, name, by, "rewind", to.String(), rewindProcessor, name, fmt.Sprint(to.Transaction), to.Position)
}

// Rebuild has the leader empty what the processor fills and begin at the start,
// in one transaction; if nobody leads, as soon as somebody does. A processor
// that cannot be emptied is refused with an error that matches
// tenure.ErrInvalidConfig.
func (m *Management) Rebuild(ctx context.Context, name, by string) error {
	err := m.change(ctx, name, by, "rebuild", "", rebuildProcessor, name)
	if !errors.Is(err, errUnchanged) {
		return err
	}
	return invalid("the processor %s cannot be rebuilt: it does not say how to empty what it fills", name)
}

// errUnchanged says that a change found nothing to change.
var errUnchanged = errors.New("nothing to change")

// change runs a statement that returns a row if it changed something, and
// records it.
func (m *Management) change(ctx context.Context, name, by, action, detail, sql string, args ...any) error {
	if strings.TrimSpace(by) == "" {
		return invalid("a change must say who makes it")
	}
	changed := 0
	err := pgx.BeginTxFunc(ctx, m.database, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, m.backend.SQL(sql), args...)
		if err != nil {
			return err
		}
		if changed = int(tag.RowsAffected()); changed == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, m.backend.SQL(recordChange), by, name, action, detail); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, notifyAll, m.backend.Channel(""))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, name, err)
	}
	if changed > 0 {
		return nil
	}
	if _, err := m.Show(ctx, name); err != nil {
		return err
	}
	return errUnchanged
}
