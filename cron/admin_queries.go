package cron

// recordColumns are the columns of a run r for a Record.
const recordColumns = `
    r.id, r.schedule, r.scheduled_for, r.state, r.ticks, r.manual, r.requested_by, r.attempt, r.term,
    r.node_id, r.node_name, r.claimed_at, r.started_at, r.ended_at, r.error, r.retry_at,
    octet_length(r.output)`

// The statements of operators, who read and change schedules.
const (
	// Ticks after now, if they have rows, ran while the clock was ahead. The last run is
	// the last one of the true time, unless a failover set the clock back by less than a
	// minute.
	readStatuses = `
SELECT
    s.name,
    s.role,
    s.expression,
    s.timezone,
    s.settings::text,
    s.override::text,
    s.paused,
    s.handled_until,
    s.term,
    EXISTS (SELECT FROM {terms} t WHERE t.role = s.role AND t.term = s.term AND t.ended_at IS NULL),
    s.failures,
    s.panics,
    f.failed,
    (SELECT count(*) FROM {runs} w WHERE w.schedule = s.name AND w.state = 'waiting'),
    (SELECT count(*) FROM {runs} w WHERE w.schedule = s.name AND w.state = 'running'),
    (SELECT coalesce(sum(w.ticks), 0)::bigint FROM {runs} w WHERE w.schedule = s.name AND w.state = 'missed'),
    ARRAY(
        SELECT w.scheduled_for
        FROM {runs} w
        WHERE w.schedule = s.name AND w.scheduled_for > greatest(s.handled_until, statement_timestamp()) AND NOT w.manual
        ORDER BY w.scheduled_for
        LIMIT 10000
    ),
    s.errors,
    s.last_error,
    s.failing_since,
    clock_timestamp(),` + recordColumns + `
FROM {schedules} s
LEFT JOIN LATERAL (
    SELECT *
    FROM {runs} l
    WHERE l.schedule = s.name
        AND l.state NOT IN ('waiting', 'missed', 'skipped')
        AND l.scheduled_for <= statement_timestamp() + interval '1 minute'
    ORDER BY l.scheduled_for DESC
    LIMIT 1
) r ON true
CROSS JOIN LATERAL (
    SELECT coalesce(min(place) FILTER (WHERE state = 'succeeded') - 1, count(*)) AS failed
    FROM (
        SELECT e.state, row_number() OVER (ORDER BY e.scheduled_for DESC) AS place
        FROM {runs} e
        WHERE e.schedule = s.name
            AND e.state IN ('succeeded', 'failed', 'timed_out', 'panicked')
            AND e.scheduled_for <= statement_timestamp() + interval '1 minute'
        ORDER BY e.scheduled_for DESC
        LIMIT 100
    ) ended
) f
WHERE $1::text IS NULL OR s.name = $1
ORDER BY s.name`

	readNames = `SELECT name FROM {schedules} ORDER BY name`

	readHistory = `
SELECT` + recordColumns + `
FROM {runs} r
WHERE r.schedule = $1
ORDER BY r.scheduled_for DESC
LIMIT $2`

	readRun = `
SELECT` + recordColumns + `, r.output
FROM {runs} r
WHERE r.id = $1`

	// Returns a NULL if another run has this instant, and no row if the schedule does not
	// exist. It adds no run if the leader of its role has led for 30 s without the
	// schedule; foreign is then the role.
	addManualRun = `
WITH schedule AS (
    SELECT
        s.name,
        (
            SELECT l.role
            FROM {leaders} l
            WHERE l.role = s.role
                AND l.term <> s.term
                AND l.lease_until > clock_timestamp()
                AND l.acquired_at < clock_timestamp() - interval '30 s'
        ) AS foreign
    FROM {schedules} s
    WHERE s.name = $1
), run AS (
    INSERT INTO {runs} (schedule, scheduled_for, state, manual, requested_by)
    SELECT name, clock_timestamp(), 'waiting', true, $2
    FROM schedule
    WHERE schedule.foreign IS NULL
    ON CONFLICT (schedule, scheduled_for) DO NOTHING
    RETURNING id
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $2, 'schedule', $1, 'trigger', 'run ' || id
    FROM run
)
SELECT r.id, schedule.foreign, pg_notify($3, '')::text
FROM schedule
LEFT JOIN run r ON true`

	// Returns no row if the schedule has changed since it was read. A row for several
	// missed ticks becomes the run of the last one.
	backfill = `
WITH schedule AS (
    SELECT name FROM {schedules} WHERE name = $1 AND expression = $2 AND timezone = $3
), run AS (
    INSERT INTO {runs} AS r (schedule, scheduled_for, state, requested_by)
    SELECT s.name, t.at, 'waiting', $5
    FROM schedule s
    CROSS JOIN unnest($4::timestamptz[]) AS t(at)
    ORDER BY t.at
    ON CONFLICT (schedule, scheduled_for) DO UPDATE
    SET state = 'waiting',
        ticks = 1,
        requested_by = excluded.requested_by,
        claimed_at = clock_timestamp(),
        ended_at = NULL
    WHERE r.state IN ('missed', 'skipped')
    RETURNING r.id
), counted AS (
    SELECT count(*) AS runs FROM run
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $5, 'schedule', $1, 'backfill', 'runs: ' || runs || ', ' || $6
    FROM counted
    WHERE runs > 0
)
SELECT c.runs, pg_notify($7, '')::text
FROM schedule
CROSS JOIN counted c`

	// A resumed schedule ticks from now on, and after a clock that is ahead now, of the
	// caller's, from the true time: see turnBack. Rows of later, missed ticks were written while
	// the clock was ahead: these ticks can come. A pause records the ticks not handled by
	// any leader: the ticks after $6.
	setPaused = `
WITH changed AS (
    UPDATE {schedules}
    SET paused = $2,
        handled_until = CASE WHEN $2 THEN coalesce($7::timestamptz, handled_until) ELSE clock_timestamp() END,
        before_gap = CASE WHEN $2 THEN before_gap WHEN clock_timestamp() > $10::timestamptz + interval '1 minute' THEN '-infinity' END,
        gap_expires = CASE WHEN $2 THEN gap_expires ELSE clock_timestamp() + interval '7 days' END,
        updated_at = clock_timestamp()
    WHERE name = $1 AND paused <> $2 AND ($6::timestamptz IS NULL OR handled_until = $6)
    RETURNING name
), unhandled AS (
    INSERT INTO {runs} (schedule, scheduled_for, state, ticks, error, ended_at)
    SELECT changed.name, t.scheduled_for, 'missed', t.ticks, 'no leader handled it before the pause', clock_timestamp()
    FROM changed, unnest($8::timestamptz[], $9::bigint[]) AS t(scheduled_for, ticks)
    ON CONFLICT (schedule, scheduled_for) DO NOTHING
), ahead AS (
    DELETE FROM {runs} r
    USING changed
    WHERE NOT $2 AND r.schedule = changed.name AND r.scheduled_for > statement_timestamp() AND r.state IN ('missed', 'skipped')
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action)
    SELECT $3, 'schedule', name, $4
    FROM changed
)
SELECT count(*), (SELECT pg_notify($5, '')::text)
FROM changed`

	readChanges = `
SELECT at, changed_by, name, action, detail
FROM {changes}
WHERE kind = 'schedule' AND ($1 = '' OR name = $1)
ORDER BY id DESC
LIMIT $2`

	// Returns 0 if the name is taken or the schedule with the job is not there.
	addSchedule = `
WITH added AS (
    INSERT INTO {schedules} (name, role, expression, timezone, settings, override, before_gap, gap_expires)
    SELECT $1, j.role, $3, $4, $5::jsonb, $6::text::jsonb, ` + newGap + `
    FROM {schedules} j
    WHERE j.name = $2
    ON CONFLICT (name) DO NOTHING
    RETURNING name
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $8, 'schedule', name, 'add', $6::text
    FROM added
)
SELECT count(*), (SELECT pg_notify($9, '')::text)
FROM added`

	// Changes nothing if the schedule is no longer as it was read: $7 is its
	// override then, $8 its expression and $9 its zone.
	changeSchedule = `
WITH changed AS (
    UPDATE {schedules}
    SET expression = $2,
        timezone = $3,
        settings = $4::jsonb,
        override = $5::jsonb,
        handled_until = CASE WHEN expression = $2 AND timezone = $3 THEN handled_until ELSE clock_timestamp() END,
        before_gap = CASE
            WHEN expression = $2 AND timezone = $3 THEN before_gap
            WHEN clock_timestamp() > $12::timestamptz + interval '1 minute' THEN '-infinity'
        END,
        gap_expires = CASE WHEN expression = $2 AND timezone = $3 THEN gap_expires ELSE clock_timestamp() + interval '7 days' END,
        updated_at = clock_timestamp()
    WHERE name = $1 AND override IS NOT DISTINCT FROM $7::jsonb AND expression = $8 AND timezone = $9
    RETURNING name
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $6, 'schedule', name, 'change', $10
    FROM changed
)
SELECT count(*), (SELECT pg_notify($11, '')::text)
FROM changed`

	// The leader stores the program's declaration.
	resetSchedule = `
WITH changed AS (
    UPDATE {schedules}
    SET override = NULL, updated_at = clock_timestamp()
    WHERE name = $1 AND override IS NOT NULL AND NOT override ? 'job'
    RETURNING name
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action)
    SELECT $2, 'schedule', name, 'reset'
    FROM changed
)
SELECT count(*), (SELECT pg_notify($3, '')::text)
FROM changed`

	// The leader runs an operator's schedule only while it has a row.
	removeSchedule = `
WITH removed AS (
    DELETE FROM {schedules} s
    WHERE s.name = $1
        AND (s.override ? 'job' OR NOT EXISTS (
            SELECT
            FROM {leaders} l
            WHERE l.role = s.role AND l.term = s.term AND l.lease_until > clock_timestamp()
        ))
    RETURNING name
), forgotten AS (
    DELETE FROM {runs} r
    USING removed
    WHERE r.schedule = removed.name
    RETURNING r.id
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT $2, 'schedule', name, 'remove', 'with runs: ' || (SELECT count(*) FROM forgotten)
    FROM removed
)
SELECT count(*), (SELECT pg_notify($3, '')::text)
FROM removed`
)
