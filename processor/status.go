package processor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

// Status is the status of a processor.
type Status struct {
	Name, Kind, Role string
	Log              string // display name of its log
	Status           string // active, paused or failed
	Cursor           Cursor // all events up to here are handled
	Term             int64  // the last term that ran it
	NodeID           uuid.UUID
	NodeName         string
	Led              bool // its role has a leader now, in that term
	Busy             bool // a batch may be in flight
	Rebuilding       bool // a rebuild was requested and has not begun
	Processed        int64
	Behind           int64     // waiting events at the last measurement; see Lag
	MeasuredAt       time.Time // when the leader measured Behind; zero if no leader has
	WaitingSince     time.Time // when the first of them occurred; zero if none
	Errors           int       // failed attempts in a row
	Panics           int64     // total number of handler calls that panicked
	Failing          Cursor    // the failing event; zero if none fails or it is not known yet
	LastError        string
	LastErrorAt      time.Time // zero if there was none
	NextAttemptAt    time.Time // zero if nothing failed
	// StuckError is why the processor cannot work although no event is to blame: its log
	// cannot be read, it cannot begin with its configuration, or its handler does not
	// return. These errors are no attempts. It is empty while the processor works.
	// StuckSince is when the trouble began, StuckFor how long before the read, and
	// StuckErrors the number of errors since.
	StuckError  string
	StuckSince  time.Time
	StuckFor    time.Duration
	StuckErrors int
	DeadLetters int // neither replayed nor dismissed
	Skipped     int // of these, how many an operator skipped
	// RefusedRole is another role with an attempt to run the processor within the last
	// minute, and RefusedNode the node of the attempt; see [ErrOwned].
	RefusedRole, RefusedNode string
	UpdatedAt                time.Time
}

// UnknownError is returned if there is no processor with this name. It matches
// tenure.ErrInvalidConfig.
type UnknownError struct {
	Name  string
	Known []string // the existing processors, sorted
}

// Error lists the existing processors.
func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no processor %q: no processor is registered yet; a leader registers each one when it first runs it", e.Name)
	}
	return fmt.Sprintf("there is no processor %q; known processors: %s", e.Name, strings.Join(e.Known, ", "))
}

// Unwrap returns tenure.ErrInvalidConfig.
func (e *UnknownError) Unwrap() error { return tenure.ErrInvalidConfig }

// List returns the named processors, or all if there are no names, ordered by
// name.
func (m *Admin) List(ctx context.Context, names ...string) ([]Status, error) {
	return collect(ctx, m.tables, "list processors", scanStatus, listProcessors, append([]string{}, names...))
}

// Show returns one processor. If it does not exist, the error is an *UnknownError, as for
// the other methods.
func (m *Admin) Show(ctx context.Context, name string) (Status, error) {
	found, err := m.List(ctx, name)
	if err != nil {
		return Status{}, err
	}
	if len(found) == 0 {
		return Status{}, m.unknown(ctx, name)
	}
	return found[0], nil
}

// unknown returns the error for a name without a processor.
func (m *Admin) unknown(ctx context.Context, name string) error {
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

// collect queries the database and collects the rows.
func collect[T any](ctx context.Context, from schema.Querier, doing string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := from.Query(ctx, sql, args...) // rows reports the error
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return all, nil
}

func scanStatus(row pgx.CollectableRow) (Status, error) {
	var (
		s                                   Status
		failing                             *uint64
		failingAt                           *int64
		node                                *uuid.UUID
		waitingSince, lastErrorAt, nextTime *time.Time
		stuckSince, measuredAt              *time.Time
		stuckFor                            float64
	)
	err := row.Scan(&s.Name, &s.Kind, &s.Role, &s.Log, &s.Status, &s.Cursor.Transaction, &s.Cursor.Position, &s.Term, &node, &s.NodeName,
		&s.Led, &s.Busy, &s.Rebuilding, &s.Processed, &s.Behind, &measuredAt, &waitingSince, &s.Errors, &s.Panics, &failing, &failingAt,
		&s.LastError, &lastErrorAt, &nextTime, &s.DeadLetters, &s.Skipped, &s.RefusedRole, &s.RefusedNode,
		&s.StuckError, &stuckSince, &stuckFor, &s.StuckErrors, &s.UpdatedAt)
	s.Failing = Cursor{value(failing), value(failingAt)}
	s.NodeID = value(node)
	s.WaitingSince, s.LastErrorAt, s.NextAttemptAt = value(waitingSince), value(lastErrorAt), value(nextTime)
	s.MeasuredAt = value(measuredAt)
	s.StuckSince, s.StuckFor = value(stuckSince), max(0, time.Duration(stuckFor*float64(time.Millisecond)))
	return s, err
}
