package cron

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// orphanWait is how long a leader has no schedule of a name before the waiting runs of
// this schedule end: a node with another program may lead soon.
const orphanWait = 10 * time.Minute

// endOrphans ends the runs of the role's schedules missing on this leader. Runs of earlier
// terms end at the beginning of the term. If they may be repeated, they wait for a leader
// with the schedule, like requested runs, for at most orphanWait.
func (l *loop) endOrphans(ctx context.Context) error {
	if time.Now().Before(l.orphansAt) {
		return nil
	}
	role, term, settled := l.term.Role().Name(), l.term.Number(), time.Since(l.began) >= l.orphanWait
	rows, _ := l.tables.Query(ctx, findOrphans, role, term) // rows reports the error
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("read the runs without a leader: %w", err)
	}
	var ended []Record
	if len(found) > 0 {
		err = l.fenced(ctx, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, l.tables.SQL(endOrphans), role, term, settled, l.orphanWait.String()) // rows reports the error
			ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Record, err error) {
				return r, row.Scan(&r.Schedule, &r.ScheduledFor, &r.State, &r.Attempt, &r.Error)
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("end the runs without a leader: %w", err)
		}
	}
	l.orphansAt = time.Now().Add(l.orphanWait)
	l.logTakeOver(nil, nil, ended)
	return nil
}

const (
	findOrphans = `
SELECT r.id
FROM {schedules} s
JOIN {runs} r ON r.schedule = s.name
WHERE s.role = $1 AND s.term <> $2 AND r.state IN ('waiting', 'running') AND r.term <> $2
LIMIT 1`

	// A paused schedule keeps the runs that wait for the end of the pause.
	endOrphans = `
UPDATE {runs} r
SET state = CASE WHEN o.again THEN 'waiting' ELSE 'abandoned' END,
    attempt = r.attempt + o.again::integer,
    error = CASE r.state
        WHEN 'running' THEN 'term ' || r.term || ' ended before it could record the end of the run, and the next leader does not have the schedule'
        ELSE 'the leader of the role has not had the schedule for ' || $4::text
    END,
    ended_at = CASE WHEN o.again THEN NULL ELSE clock_timestamp() END
FROM (
    SELECT r.id, r.state = 'running' AND NOT $3 AND s.settings ->> 'policy' = 'at_least_once' AS again
    FROM {schedules} s
    JOIN {runs} r ON r.schedule = s.name
    WHERE s.role = $1
        AND s.term <> $2
        AND r.term <> $2
        AND (r.state = 'running' OR r.state = 'waiting' AND $3 AND ` + mayStart + `)
) o
WHERE r.id = o.id AND r.state IN ('waiting', 'running')
RETURNING r.schedule, r.scheduled_for, r.state, r.attempt, r.error`
)
