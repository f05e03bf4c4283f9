package retention

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// Query selects days. The zero value selects all of them.
type Query struct {
	// Since is the first day and Until the day after the last one, in UTC, whatever the
	// time of day. The zero time means no bound.
	Since, Until time.Time
	// Name selects one role, schedule or metric. Default: all.
	Name string
	// Limit is the maximum number of rows, newest days first. Default: 1,000.
	Limit int
}

// RoleDay has the totals of a role's terms ended on a day.
type RoleDay struct {
	Day   time.Time // 0:00 UTC
	Role  string
	Terms int64
	// Unclean counts the terms ended by a crash, an expired lease or a server change.
	Unclean int64
	// Led is the total length of the terms, and Vacancy the total length of the
	// vacancies before them.
	Led, Vacancy, LongestVacancy time.Duration
}

// NodeDay counts the joins, leaves and deaths of nodes on a day.
type NodeDay struct {
	Day                time.Time // 0:00 UTC
	Joined, Left, Died int64
}

// ScheduleDay has the totals of a schedule's runs due on a day.
type ScheduleDay struct {
	Day       time.Time // 0:00 UTC
	Schedule  string
	Succeeded int64
	Failed    int64 // including runs that timed out, panicked or were abandoned
	Missed    int64 // ticks, including skipped ones
	// Ran is the total length of the runs, and Longest the length of the longest one.
	Ran, Longest time.Duration
}

// MetricDay has the totals of a metric on a day, over all nodes.
type MetricDay struct {
	Day    time.Time // 0:00 UTC
	Metric string
	Labels map[string]string
	Kind   string // gauge or counter
	// Samples is the number of samples. Total is their sum, or the increase of a
	// counter. Least and Greatest are set for gauges.
	Samples                int64
	Total, Least, Greatest float64
}

// RoleDays returns the totals of each role and day, newest first. They include rows not
// yet rolled up.
//
// The database user needs the privileges of [postgres.Backend.WorkGrants], as for the
// other functions.
func RoleDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]RoleDay, error) {
	return read(ctx, backend, database, roleDays, query, func(row pgx.CollectableRow) (d RoleDay, err error) {
		var led, vacant, longest float64
		err = row.Scan(&d.Day, &d.Role, &d.Terms, &d.Unclean, &led, &vacant, &longest)
		d.Led, d.Vacancy, d.LongestVacancy = milliseconds(led), milliseconds(vacant), milliseconds(longest)
		return d, err
	})
}

// NodeDays returns the totals of each day, newest first, as [RoleDays] does. It ignores
// the name in the query.
func NodeDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]NodeDay, error) {
	query.Name = ""
	return read(ctx, backend, database, nodeDays, query, func(row pgx.CollectableRow) (d NodeDay, err error) {
		err = row.Scan(&d.Day, &d.Joined, &d.Left, &d.Died)
		return d, err
	})
}

// ScheduleDays returns the totals of each schedule and day, newest first, as [RoleDays]
// does.
func ScheduleDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]ScheduleDay, error) {
	return read(ctx, backend, database, scheduleDays, query, func(row pgx.CollectableRow) (d ScheduleDay, err error) {
		var ran, longest float64
		err = row.Scan(&d.Day, &d.Schedule, &d.Succeeded, &d.Failed, &d.Missed, &ran, &longest)
		d.Ran, d.Longest = milliseconds(ran), milliseconds(longest)
		return d, err
	})
}

// MetricDays returns the totals of each metric and day, newest first. They do not include
// samples not yet rolled up, of the last 24 hours.
func MetricDays(ctx context.Context, backend *postgres.Backend, database postgres.Database, query Query) ([]MetricDay, error) {
	return read(ctx, backend, database, metricDays, query, func(row pgx.CollectableRow) (d MetricDay, err error) {
		err = row.Scan(&d.Day, &d.Metric, &d.Labels, &d.Kind, &d.Samples, &d.Total, &d.Least, &d.Greatest)
		return d, err
	})
}

const defaultLimit = 1000

func read[R any](
	ctx context.Context, backend *postgres.Backend, database postgres.Database, totals totals, query Query, scan pgx.RowToFunc[R],
) ([]R, error) {
	query.Limit = cmp.Or(query.Limit, defaultLimit)
	sql, err := totals.sql(ctx, schema.Of(backend), database)
	if err != nil || sql == "" {
		return nil, err
	}
	rows, _ := database.Query(ctx, sql, day(query.Since), day(query.Until), query.Name, query.Limit) // CollectRows returns the error of the query too
	days, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read the daily totals: %w", err)
	}
	return days, nil
}

// sql returns the statement for the parts with existing tables, or "" if there are none.
func (t totals) sql(ctx context.Context, tables *schema.Schema, database postgres.Database) (string, error) {
	var parts []string
	for _, p := range t.parts {
		exist := p.of == nil
		if !exist {
			var err error
			if exist, err = tables.Has(ctx, database, p.of); err != nil {
				return "", err
			}
		}
		if exist {
			parts = append(parts, tables.SQL(p.sql))
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	return fmt.Sprintf(tables.SQL(t.selected), strings.Join(parts, "\n    UNION ALL")), nil
}

// day returns the beginning of the day of a time, or nil for the zero time.
func day(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(24 * time.Hour)
	return &at
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
