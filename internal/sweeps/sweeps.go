// Package sweeps reads how the searches for old rows of package retention ended.
package sweeps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// Status is the state of the retention of one kind of rows, as the last compactor recorded
// it.
type Status struct {
	Rows string // such as "runs" or "dead letters"
	// Keep is how long rows are kept, and Interval the time between two searches for old
	// rows.
	Keep, Interval time.Duration
	// SweptAt is when a search last ended with no old rows left; zero if none has.
	SweptAt time.Time
	// Errors is how many searches in a row have failed since FailingSince, the last one
	// with LastError. All three are zero if the last search succeeded.
	Errors       int64
	FailingSince time.Time
	LastError    string
	// Oldest is the time of the oldest row for retention to remove; zero if there is none.
	Oldest time.Time
	// Late is for how much longer than Keep and two intervals the oldest row is kept; 0 if
	// it is not.
	Late time.Duration
}

// List returns the state of each kind of rows a compactor has searched for, sorted by its
// name. It returns none if no compactor has ever run. The database user needs the
// privileges of [postgres.Backend.WorkGrants].
func List(ctx context.Context, backend *postgres.Backend, database postgres.Database) ([]Status, error) {
	tables := schema.Of(backend)
	if exist, err := tables.Has(ctx, database, features.Rollups); err != nil || !exist {
		return nil, err
	}
	var now time.Time
	rows, _ := database.Query(ctx, tables.SQL(readSweeps)) // CollectRows returns the error of the query too
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Status, err error) {
		var keep, interval int64
		var swept, failing *time.Time
		err = row.Scan(&s.Rows, &keep, &interval, &swept, &s.Errors, &failing, &s.LastError, &now)
		s.Keep, s.Interval = time.Duration(keep)*time.Millisecond, time.Duration(interval)*time.Millisecond
		s.SweptAt, s.FailingSince = orZero(swept), orZero(failing)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of the retention: %w", err)
	}
	oldest, err := readOldest(ctx, tables, database, all)
	if err != nil {
		return nil, fmt.Errorf("read the oldest rows: %w", err)
	}
	for i := range all {
		s := &all[i]
		if s.Oldest = oldest[s.Rows]; !s.Oldest.IsZero() {
			s.Late = max(0, now.Sub(s.Oldest)-s.Keep-2*s.Interval)
		}
	}
	return all, nil
}

// readOldest returns the time of the oldest row of each kind with a state and tables.
func readOldest(ctx context.Context, tables *schema.Schema, database postgres.Database, states []Status) (map[string]time.Time, error) {
	var parts, names []string
	for _, k := range kinds {
		if !slices.ContainsFunc(states, func(s Status) bool { return s.Rows == k.name }) {
			continue
		}
		if k.of != nil {
			if exist, err := tables.Has(ctx, database, k.of); err != nil {
				return nil, err
			} else if !exist {
				continue
			}
		}
		names, parts = append(names, k.name), append(parts, "("+tables.SQL(k.oldest)+")")
	}
	if len(parts) == 0 {
		return nil, nil
	}
	rows, _ := database.Query(ctx, "SELECT ARRAY["+strings.Join(parts, ", ")+"]") // CollectExactlyOneRow returns the error of the query too
	times, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]*time.Time])
	if err != nil {
		return nil, err
	}
	oldest := make(map[string]time.Time, len(names))
	for i, name := range names {
		oldest[name] = orZero(times[i])
	}
	return oldest, nil
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// The kinds of rows, as they are recorded.
const (
	Samples     = "samples"
	Terms       = "terms"
	NodeChanges = "changes of nodes"
	Runs        = "runs"
	Changes     = "changes by hand"
	DeadLetters = "dead letters"
)

// kinds are the rows with an index on their time, each with the statement to return the
// oldest one's. A node removes its samples itself.
var kinds = []struct {
	name   string
	of     *schema.Feature // the owner of the table; nil for the core
	oldest string
}{
	{Terms, nil, `SELECT min(ended_at) FROM {history}`},
	{NodeChanges, nil, `SELECT min(at) FROM {node_history}`},
	{Runs, features.Schedules, `SELECT min(ended_at) FROM {runs} WHERE ended_at IS NOT NULL`},
	{Changes, features.Changes, `SELECT min(at) FROM {changes}`},
	{DeadLetters, features.Processors, `SELECT min(coalesce(replayed_at, dismissed_at)) FROM {dead_letters} WHERE coalesce(replayed_at, dismissed_at) IS NOT NULL`},
}

const readSweeps = `
SELECT kind, keep_ms, interval_ms, swept_at, errors, failing_since, last_error, clock_timestamp()
FROM {rollup_states}
ORDER BY kind`
