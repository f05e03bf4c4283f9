package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// Admin reads and changes the schedules of an installation, from any process with access
// to the database. An error comes from the database, or is an [UnknownError] for a missing
// schedule. It is safe for concurrent use if its database is. Each call is limited to 30
// s, or less by its context.
type Admin struct {
	tables schema.Tables
}

// NewAdmin returns an Admin for the schedules of a backend's installation.
// database must be the backend's database.
func NewAdmin(backend *postgres.Backend, database postgres.Database) *Admin {
	return &Admin{tablesOf(backend, database)}
}

// Status is a schedule as stored in the database.
type Status struct {
	Schedule // Job is nil

	// Override has the operators' settings; nil if the schedule is as its program declares
	// it.
	Override *Override

	Role   string
	Term   int64 // the last term of the role whose leader ran the schedule
	Loaded bool  // whether Term is the role's current term
	Paused bool
	// HandledUntil is the time up to which all ticks have been handled.
	HandledUntil time.Time
	// Ahead is how far HandledUntil is ahead of the database's clock, if by more than a
	// minute: no tick starts until then. The clock was set back, or is wrong.
	Ahead time.Duration
	// Next is the next unhandled tick, without jitter, in the schedule's zone; zero if the
	// schedule is paused.
	Next     time.Time
	Last     *Record // the last run that started or was abandoned; nil if there is none
	Waiting  int64   // waiting runs
	Running  int64   // runs in progress, or left by a leader that ended
	Failures int64   // runs that failed, timed out or panicked since the schedule was added
	Panics   int64   // panicked runs among them
	// FailedInRow is how many runs failed, timed out or panicked since the last successful
	// one, among the last 100 stored runs.
	FailedInRow int64
	Missed      int64 // ticks without a leader, among the stored runs
	// Problem says why the next tick is not known, for example because this
	// machine does not know the time zone.
	Problem error
	// Overdue is how long a tick has waited to be handled, if for more than a minute.
	Overdue time.Duration
	// Errors is how often in a row the leader could not work with the schedule; 0 if it
	// works. LastError is the last reason, and FailingSince when the first one occurred.
	Errors       int64
	LastError    string
	FailingSince time.Time

	ran []time.Time // ticks that ran although they are still to come
}

// maxAhead is how far ahead of the database's clock ticks may be handled normally: a
// failover can set the clock back.
const maxAhead = time.Minute

// maxLate is how late a tick may be handled before its schedule is overdue.
const maxLate = time.Minute

// overdue returns how long a tick has waited to be handled, if for too long.
func (s Status) overdue(now time.Time) time.Duration {
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil || s.Paused {
		return 0
	}
	tick := expression.Next(s.HandledUntil)
	if late := now.Sub(tick) - s.Jitter; !tick.IsZero() && late > maxLate {
		return late
	}
	return 0
}

// UnknownError is returned if there is no schedule with this name. It matches
// tenure.ErrInvalidConfig.
type UnknownError struct {
	Name  string
	Known []string // the existing schedules, sorted
}

// Error lists the existing schedules.
func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no schedule %q: no schedule is registered yet; a leader registers each one when it first runs it", e.Name)
	}
	return fmt.Sprintf("there is no schedule %q; known schedules: %s", e.Name, strings.Join(e.Known, ", "))
}

// Unwrap returns tenure.ErrInvalidConfig.
func (e *UnknownError) Unwrap() error { return tenure.ErrInvalidConfig }

// List returns the schedules, sorted by name.
func (m *Admin) List(ctx context.Context) ([]Status, error) {
	statuses, now, err := m.statuses(ctx, nil)
	if err != nil {
		return nil, err
	}
	for i := range statuses {
		statuses[i].Next, statuses[i].Problem = first(statuses[i].ticks(now, 1))
	}
	return statuses, nil
}

// Show returns one schedule.
func (m *Admin) Show(ctx context.Context, name string) (Status, error) {
	statuses, now, err := m.statuses(ctx, &name)
	if err != nil {
		return Status{}, err
	}
	if len(statuses) == 0 {
		return Status{}, m.unknown(ctx, name)
	}
	s := statuses[0]
	s.Next, s.Problem = first(s.ticks(now, 1))
	return s, nil
}

func first(ticks []time.Time, err error) (time.Time, error) {
	if len(ticks) == 0 {
		return time.Time{}, err
	}
	return ticks[0], nil
}

// Next returns the next n ticks of a schedule by the database's clock, without
// jitter, in the schedule's zone. A paused schedule has none.
func (m *Admin) Next(ctx context.Context, name string, n int) ([]time.Time, error) {
	statuses, now, err := m.statuses(ctx, &name)
	if err != nil {
		return nil, err
	}
	if len(statuses) == 0 {
		return nil, m.unknown(ctx, name)
	}
	return statuses[0].ticks(now, n)
}

// ticks returns the next n ticks after an instant.
func (s Status) ticks(now time.Time, n int) ([]time.Time, error) {
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil || s.Paused {
		return nil, err
	}
	if s.HandledUntil.After(now) {
		now = s.HandledUntil
	}
	var all []time.Time
	for tick := expression.Next(now); len(all) < n && !tick.IsZero(); tick = expression.Next(tick) {
		if _, ran := slices.BinarySearchFunc(s.ran, tick, time.Time.Compare); !ran {
			all = append(all, tick)
		}
	}
	return all, nil
}

// History returns the runs of a schedule, latest tick first, up to a limit.
func (m *Admin) History(ctx context.Context, name string, limit int) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if limit < 1 {
		return nil, invalid("the limit is %d; it must be at least 1", limit)
	}
	rows, _ := m.tables.Query(ctx, readHistory, name, limit) // rows reports the error
	records, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", name, err)
	}
	if len(records) == 0 {
		return nil, m.mustExist(ctx, name)
	}
	return records, nil
}

// Trigger requests a run of a schedule now, and returns the run's id. The schedule's
// leader starts it immediately, even if the schedule is paused; if that leader ends, a
// repetition waits for the end of a pause. If an earlier run has not ended, the new run
// waits for it unless overlaps are allowed. If the leader does not have the schedule, the
// error is a [ConflictError]. by is the requester to record.
func (m *Admin) Trigger(ctx context.Context, name, by string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := checkBy(by); err != nil {
		return 0, err
	}
	for {
		var id *int64
		var foreign *string
		err := m.one(ctx, addManualRun, []any{name, by, m.tables.Channel("")}, &id, &foreign, nil)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return 0, m.unknown(ctx, name)
		case err != nil:
			return 0, fmt.Errorf("trigger %s: %w", name, err)
		case foreign != nil:
			return 0, conflict("the leader of the role %s does not run the schedule %s: give it the same program or file, or remove the schedule", *foreign, name)
		case id != nil:
			return *id, nil
		}
		// Another run has this microsecond: try the next one.
	}
}

// Pause pauses a schedule: after it returns, no tick is claimed and no waiting run starts.
// Running jobs continue. Ticks during the pause are not recorded. Earlier due ticks, if no
// leader has handled them, are recorded as missed. by is the requester to record.
func (m *Admin) Pause(ctx context.Context, name, by string) error {
	return m.setPaused(ctx, name, by, true)
}

// Resume ends a pause: the schedule ticks from now on, and waiting runs start.
// If the schedule is not paused, nothing changes.
func (m *Admin) Resume(ctx context.Context, name, by string) error {
	return m.setPaused(ctx, name, by, false)
}

func (m *Admin) setPaused(ctx context.Context, name, by string, paused bool) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := checkBy(by); err != nil {
		return err
	}
	action := "resume"
	if paused {
		action = "pause"
	}
	for {
		var handled *time.Time
		var late unhandled
		if paused {
			var err error
			if handled, late, err = m.unhandled(ctx, name); err != nil {
				return err
			}
		}
		var changed int
		err := m.one(ctx, setPaused, []any{name, paused, by, action, m.tables.Channel(""), handled, late.until, late.at, late.ticks, time.Now()}, &changed, nil)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%s %s: %w", action, name, err)
		case changed > 0:
			return nil
		case handled == nil:
			return m.mustExist(ctx, name)
		}
		// A leader handled ticks since, or another operator has paused the schedule.
		if s, err := m.Show(ctx, name); err != nil || s.Paused {
			return err
		}
	}
}

func checkBy(by string) error {
	if by == "" {
		return invalid("a change must name its requester")
	}
	return nil
}

// statuses reads all schedules, or one, and the database's clock.
func (m *Admin) statuses(ctx context.Context, name *string) ([]Status, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var now time.Time
	rows, _ := m.tables.Query(ctx, readStatuses, name) // rows reports the error
	statuses, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Status, err error) {
		var settings string
		var override *string
		var last nullableRecord
		var failing *time.Time
		err = row.Scan(append([]any{&s.Name, &s.Role, &s.Expression, &s.Zone, &settings, &override, &s.Paused, &s.HandledUntil, &s.Term, &s.Loaded,
			&s.Failures, &s.Panics, &s.FailedInRow, &s.Waiting, &s.Running, &s.Missed, &s.ran, &s.Errors, &s.LastError, &failing, &now}, last.targets()...)...)
		if err == nil {
			err = s.decodeSettings(settings)
		}
		if err == nil && override != nil {
			s.Override, err = decodeOverride(*override)
		}
		if ahead := s.HandledUntil.Sub(now); ahead > maxAhead {
			s.Ahead = ahead
		}
		if failing != nil {
			s.FailingSince = *failing
		}
		s.Overdue = s.overdue(now)
		s.Last = last.record()
		return s, err
	})
	if err != nil {
		return nil, now, fmt.Errorf("read the schedules: %w", err)
	}
	return statuses, now, nil
}

// mustExist returns an error if the schedule does not exist.
func (m *Admin) mustExist(ctx context.Context, name string) error {
	var unknown *UnknownError
	err := m.unknown(ctx, name)
	if errors.As(err, &unknown) && slices.Contains(unknown.Known, name) {
		return nil
	}
	return err
}

// unknown returns the error for a missing schedule.
func (m *Admin) unknown(ctx context.Context, name string) error {
	rows, _ := m.tables.Query(ctx, readNames) // rows reports the error
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the names of the schedules: %w", err)
	}
	return &UnknownError{name, names}
}

// one reads one row.
func (m *Admin) one(ctx context.Context, sql string, args []any, into ...any) error {
	rows, err := m.tables.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (none struct{}, err error) { return none, row.Scan(into...) })
	return err
}
