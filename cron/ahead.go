package cron

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A database's clock can be ahead for a while and come back. In the false time, ticks of
// the future are missed, and some of them run. A row cannot show which of two times was
// true, but it shows where ticks were missed: before_gap is the end of the handled ticks
// before the gap. If the clock later shows a time before handled_until, the gap was no
// outage, and turnBack forgets it:
//
//   - Ticks that ran keep their rows: no tick runs twice.
//   - Ticks that were missed or skipped, or wait without having run, lose their rows. They
//     are decided again, by the true time. One change records their number.
//   - The schedule continues after the last tick handled by the true time.
//
// A schedule that begins at a time of the clock, new, resumed or changed, has a gap from
// -infinity if this clock is ahead of the program's: it continues from the present time. No
// tick before is decided again.
//
// Without a gap, the ticks up to handled_until were handled when they were due. If the
// clock then shows an earlier time, it may be wrong now: the schedule waits for the clock,
// and [Status.Ahead] shows for how long.

// turnedBack is a schedule after its gap was forgotten.
type turnedBack struct {
	name                     string
	from, to                 time.Time
	missed, skipped, waiting int64
}

// turnBack makes the schedules of this term continue from the database's clock after it
// was ahead, and bounds the waits for retries by their delays.
func (l *loop) turnBack(ctx context.Context) error {
	role, term := l.term.Role().Name(), l.term.Number()
	var all []turnedBack
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.tables.SQL(boundRetries), role, term); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, l.tables.SQL(turnBack), role, term, l.config.Grace.Microseconds(), l.node.Name()) // rows reports the error
		var err error
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t turnedBack, err error) {
			return t, row.Scan(&t.name, &t.from, &t.to, &t.missed, &t.skipped, &t.waiting)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("turn the schedules back: %w", err)
	}
	for _, t := range all {
		l.log.Warn("the database's clock was ahead: a schedule continues from the present time", "schedule", t.name,
			"handled_until", t.from, "continues_from", t.to, "missed", t.missed, "skipped", t.skipped, "waiting", t.waiting)
	}
	return nil
}

// The statements to end the consequences of false times.
const (
	boundRetries = `
UPDATE {runs} r
SET retry_at = clock_timestamp() + r.retry_delay
FROM {schedules} s
WHERE s.role = $1 AND s.term = $2 AND r.schedule = s.name AND r.state = 'waiting' AND r.retry_at > clock_timestamp() + r.retry_delay`

	// Runs requested by an operator stay. Ticks of more than a day ago are not decided
	// again: the rows of runs may have been removed. Runs with a lower id than those before
	// the gap are of an earlier false time: ticks before them may not be decided.
	turnBack = `
WITH ahead AS MATERIALIZED (
    SELECT name, handled_until, before_gap
    FROM {schedules}
    WHERE role = $1 AND term = $2 AND before_gap < handled_until AND handled_until > clock_timestamp() + $3 * interval '1 microsecond'
    ORDER BY name
    FOR NO KEY UPDATE
), target AS (
    SELECT
        a.name,
        a.handled_until,
        CASE WHEN a.before_gap = '-infinity' THEN statement_timestamp() ELSE greatest(a.before_gap, statement_timestamp() - interval '1 day', (
            SELECT max(r.scheduled_for)
            FROM {runs} r
            WHERE r.schedule = a.name
                AND r.scheduled_for <= statement_timestamp()
                AND NOT r.manual
                AND r.requested_by = ''
                AND r.state <> 'missed'
                AND (r.state <> 'waiting' OR r.term > 0)
                AND r.id > coalesce((
                    SELECT max(b.id)
                    FROM {runs} b
                    WHERE b.schedule = a.name
                        AND b.scheduled_for BETWEEN a.before_gap - interval '1 hour' AND a.before_gap
                        AND NOT b.manual
                        AND b.requested_by = ''
                ), 0)
        )) END AS until
    FROM ahead a
), removed AS (
    DELETE FROM {runs} r
    USING target t
    WHERE r.schedule = t.name
        AND r.scheduled_for > t.until
        AND NOT r.manual
        AND r.requested_by = ''
        AND (r.state IN ('missed', 'skipped') OR r.state = 'waiting' AND r.term = 0)
    RETURNING r.schedule, r.state, r.ticks
), counted AS (
    SELECT
        t.name,
        t.handled_until,
        t.until,
        coalesce(sum(r.ticks) FILTER (WHERE r.state = 'missed'), 0)::bigint AS missed,
        count(*) FILTER (WHERE r.state = 'skipped') AS skipped,
        count(*) FILTER (WHERE r.state = 'waiting') AS waiting
    FROM target t
    LEFT JOIN removed r ON r.schedule = t.name
    GROUP BY t.name, t.handled_until, t.until
), turned AS (
    UPDATE {schedules} s
    SET handled_until = t.until, before_gap = NULL, gap_expires = NULL, updated_at = clock_timestamp()
    FROM target t
    WHERE s.name = t.name
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $4, 'schedule', name, 'clock', format(
        'the clock was ahead: handled until %s, turned back to %s; missed: %s, skipped: %s, waiting: %s',
        to_char(handled_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        missed, skipped, waiting)
    FROM counted
)
SELECT name, handled_until, until, missed, skipped, waiting
FROM counted
ORDER BY name`
)
