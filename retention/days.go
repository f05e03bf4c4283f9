package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Query narrows down what is read. The zero value means all days.
type Query struct {
	// Since and Until are the first day and the one after the last, in UTC; the
	// time of the day counts for nothing. The zero time means no bound.
	Since, Until time.Time
	// Name, if set, is that of the only role, schedule or metric.
	Name string
	// Limit is the most rows, the newest days first. Default 1,000.
	Limit int
}

// RoleDay sums up the terms of a role that ended on a day.
type RoleDay struct {
	Day   time.Time // its beginning, in UTC
	Role  string
	Terms int64
	// Unclean is how many of them crashed, expired, or ended with the server.
	Unclean int64
	// Led is how long they lasted together, and Vacant for how long nobody had led
	// before them.
	Led, Vacant, LongestVacant time.Duration
}

// NodeDay counts changes of nodes on a day.
type NodeDay struct {
	Day              time.Time // its beginning, in UTC
	Came, Went, Died int64
}

// ScheduleDay sums up the runs of a schedule that were meant for a day.
type ScheduleDay struct {
	Day       time.Time // its beginning, in UTC
	Schedule  string
	Succeeded int64
	Failed    int64 // also those that timed out, panicked or were abandoned
	Missed    int64 // ticks, skipped ones too
	// Ran is how long the runs took together, Longest the longest.
	Ran, Longest time.Duration
}

// MetricDay sums up a metric of one day, of all nodes together.
type MetricDay struct {
	Day    time.Time // its beginning, in UTC
	Metric string
	Labels map[string]string
	Kind   string // gauge or counter
	// Samples is how many there are; Total is their sum, or by how much a counter
	// grew. Least and Greatest are of gauges.
	Samples                int64
	Total, Least, Greatest float64
}

// RoleDays returns sums of the terms of each role and day, the newest first. Rows
// that are not folded yet are in them too.
//
// The user of this and of the other functions needs the privileges of
// [postgres.Backend.WorkGrants]. They are bounded by the context.
func RoleDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]RoleDay, error) {
	return read(ctx, backend, database, roleDays, query, func(row pgx.CollectableRow) (d RoleDay, err error) {
		var led, vacant, longest float64
		err = row.Scan(&d.Day, &d.Role, &d.Terms, &d.Unclean, &led, &vacant, &longest)
		d.Led, d.Vacant, d.LongestVacant = milliseconds(led), milliseconds(vacant), milliseconds(longest)
		return d, err
	})
}

// NodeDays returns counts of the changes of nodes on each day, the newest first,
// as [RoleDays] does. The name in the query means nothing.
func NodeDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]NodeDay, error) {
	query.Name = ""
	return read(ctx, backend, database, nodeDays, query, func(row pgx.CollectableRow) (d NodeDay, err error) {
		err = row.Scan(&d.Day, &d.Came, &d.Went, &d.Died)
		return d, err
	})
}

// ScheduleDays returns sums of the runs of each schedule and day, the newest
// first, as [RoleDays] does.
func ScheduleDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]ScheduleDay, error) {
	return read(ctx, backend, database, scheduleDays, query, func(row pgx.CollectableRow) (d ScheduleDay, err error) {
		var ran, longest float64
		err = row.Scan(&d.Day, &d.Schedule, &d.Succeeded, &d.Failed, &d.Missed, &ran, &longest)
		d.Ran, d.Longest = milliseconds(ran), milliseconds(longest)
		return d, err
	})
}

// MetricDays returns sums of what was measured on each day, the newest first. What
// is not folded yet, that is the last 24 hours, is not in them.
func MetricDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]MetricDay, error) {
	return read(ctx, backend, database, metricDays, query, func(row pgx.CollectableRow) (d MetricDay, err error) {
		err = row.Scan(&d.Day, &d.Metric, &d.Labels, &d.Kind, &d.Samples, &d.Total, &d.Least, &d.Greatest)
		return d, err
	})
}

const defaultLimit = 1000

func read[R any](
	ctx context.Context, backend *postgres.Backend, database postgres.Database, sql string, query Query, scan pgx.RowToFunc[R],
) ([]R, error) {
	if query.Limit == 0 {
		query.Limit = defaultLimit
	}
	rows, _ := database.Query(ctx, backend.SQL(sql), day(query.Since), day(query.Until), query.Name, query.Limit) // its error is that of the rows
	days, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read the sums of days: %w", err)
	}
	return days, nil
}

// day is the day of a time, nil for the zero one.
func day(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(24 * time.Hour)
	return &at
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
