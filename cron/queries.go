package cron

// The statements of a leader. Fenced transactions make all changes.
const (
	// Whether a waiting run r of a schedule s may start: during a pause only if an operator
	// triggered it. A run that an earlier leader left waits for the end of the pause: its job
	// may end each leader.
	mayStart = `(NOT s.paused OR r.manual AND (r.attempt = 1 OR r.retry_at IS NOT NULL))`

	// Lets the next leader find the transaction.
	markTransaction = `SELECT pg_advisory_xact_lock_shared($1)::text`

	// Limits how long the transaction's locks outlive a paused process. The commit of a
	// claim is durable before its job starts, even if the user's default is not: if a
	// crash undid the claim, the next leader would run the tick again.
	setTransaction = `
SELECT
    set_config('idle_in_transaction_session_timeout', $1, true),
    set_config('lock_timeout', $1, true),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

	// The gap of a new schedule. If the database's clock is ahead of the caller's, the
	// schedule begins at a time that may be false.
	newGap = `
    CASE WHEN clock_timestamp() > $7::timestamptz + interval '1 minute' THEN '-infinity'::timestamptz END,
    CASE WHEN clock_timestamp() > $7::timestamptz + interval '1 minute' THEN clock_timestamp() + interval '7 days' END`

	// Locks the rows of schedules before their owners are read: terms begun before the
	// lock must be visible.
	addSchedules = `
INSERT INTO {schedules} (name, role, expression, timezone, settings, before_gap, gap_expires)
SELECT n.name, $1, n.expression, n.timezone, n.settings::jsonb, ` + newGap + `
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[]) AS n(name, expression, timezone, settings, added)
WHERE NOT n.added
ORDER BY n.name
ON CONFLICT (name) DO NOTHING`

	// Returns the schedules already claimed by this term.
	lockSchedules = `
SELECT name, role = $2 AND term = $3
FROM {schedules}
WHERE name = ANY ($1::text[])
ORDER BY name
FOR NO KEY UPDATE`

	// A schedule can move to another role when its own role has no leader. An operator's
	// schedule is not inserted again after its removal.
	loadSchedules = `
INSERT INTO {schedules} AS s (name, role, expression, timezone, settings, term)
SELECT n.name, $1, n.expression, n.timezone, n.settings::jsonb, $2
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[]) AS n(name, expression, timezone, settings, added)
WHERE NOT n.added OR EXISTS (SELECT FROM {schedules} e WHERE e.name = n.name AND e.override ? 'job')
ORDER BY n.name
ON CONFLICT (name) DO UPDATE
SET role = excluded.role,
    expression = excluded.expression,
    timezone = excluded.timezone,
    settings = excluded.settings,
    term = excluded.term,
    handled_until = CASE
        WHEN s.expression = excluded.expression AND s.timezone = excluded.timezone THEN s.handled_until
        ELSE clock_timestamp()
    END,
    before_gap = CASE
        WHEN s.expression = excluded.expression AND s.timezone = excluded.timezone THEN s.before_gap
        WHEN clock_timestamp() > $8::timestamptz + interval '1 minute' THEN '-infinity'
    END,
    gap_expires = CASE WHEN s.expression = excluded.expression AND s.timezone = excluded.timezone THEN s.gap_expires ELSE clock_timestamp() + interval '7 days' END,
    updated_at = clock_timestamp()
WHERE s.role = excluded.role
    OR NOT EXISTS (SELECT FROM {leaders} l WHERE l.role = s.role AND l.lease_until > clock_timestamp())
RETURNING s.name`

	releaseSchedules = `
UPDATE {schedules}
SET term = 0, updated_at = clock_timestamp()
WHERE name = ANY ($1) AND role = $2 AND term = $3`

	// Runs left running by earlier terms: whether their jobs started is unknown. Runs
	// claimed by this term, of its schedules, are excluded: their jobs have started, or
	// recover starts them.
	takeOver = `
UPDATE {runs} r
SET state = CASE WHEN n.again THEN 'waiting' ELSE 'abandoned' END,
    attempt = r.attempt + n.again::integer,
    error = 'term ' || r.term || ' ended before it could record the end of the run',
    ended_at = CASE WHEN n.again THEN NULL ELSE clock_timestamp() END
FROM unnest($1::text[], $2::boolean[], $4::boolean[]) AS n(name, again, own)
WHERE r.schedule = n.name AND r.state = 'running' AND r.id <> ALL ($3::bigint[]) AND NOT (n.own AND r.term = $5)
RETURNING r.schedule, r.scheduled_for, r.state, r.attempt, r.error`

	// The schedules of this term, and the operators' settings of schedules with a
	// declaration or a job in the program.
	readSchedules = `
SELECT
    s.name,
    s.role = $1 AND s.term = $2,
    s.override::text,
    s.paused,
    s.handled_until,
    (SELECT count(*) FROM {runs} r WHERE r.schedule = s.name AND r.state = 'waiting' AND ` + mayStart + `),
    (SELECT count(*) FROM {runs} r WHERE r.schedule = s.name AND r.state = 'running' AND r.term = $2),
    (
        SELECT coalesce(r.retry_at, to_timestamp(0))
        FROM {runs} r
        WHERE r.schedule = s.name AND r.state = 'waiting' AND ` + mayStart + `
        ORDER BY r.scheduled_for
        LIMIT 1
    ),
    (
        SELECT min(coalesce(r.retry_at, to_timestamp(0)))
        FROM {runs} r
        WHERE r.schedule = s.name AND r.state = 'waiting' AND ` + mayStart + `
    ),
    coalesce(s.before_gap < s.handled_until AND s.handled_until > clock_timestamp() + $4 * interval '1 microsecond', false)
        OR EXISTS (
            SELECT FROM {runs} r WHERE r.schedule = s.name AND r.state = 'waiting' AND r.retry_at > clock_timestamp() + r.retry_delay
        ),
    s.failing_since IS NOT NULL,
    clock_timestamp()
FROM {schedules} s
WHERE (s.role = $1 AND s.term = $2)
    OR (s.override IS NOT NULL AND (s.name = ANY ($3::text[]) OR s.override ->> 'job' = ANY ($3::text[])))`

	readRunning = `
SELECT id, schedule, scheduled_for, state, attempt, manual, requested_by, claimed_at
FROM {runs}
WHERE schedule = ANY ($1) AND state = 'running' AND term = $2`

	// The attempt is compared since a commit can be unknown: then this attempt may be
	// recorded already, and the next one claimed. A run with another attempt waits.
	recordEnds = `
WITH ended AS (
    UPDATE {runs} r
    SET state = e.state,
        attempt = r.attempt + (e.state = 'waiting')::integer,
        error = e.error,
        output = e.output,
        retry_at = CASE WHEN e.state = 'waiting' THEN clock_timestamp() + e.delay * interval '1 microsecond' END,
        retry_delay = CASE WHEN e.state = 'waiting' THEN e.delay * interval '1 microsecond' END,
        ended_at = CASE WHEN e.state <> 'waiting' THEN clock_timestamp() END
    FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::bigint[], $7::text[])
        AS e(id, attempt, state, error, delay, output)
    WHERE r.id = e.id AND r.attempt = e.attempt AND r.state = 'running' AND r.term = $1
    RETURNING r.schedule, r.state
), counted AS (
    SELECT schedule, count(*) AS failures, count(*) FILTER (WHERE state = 'panicked') AS panics
    FROM ended
    WHERE state NOT IN ('succeeded', 'waiting')
    GROUP BY schedule
)
UPDATE {schedules} s
SET failures = s.failures + c.failures, panics = s.panics + c.panics
FROM counted c
WHERE s.name = c.schedule`

	// Claims the ticks of schedules, unless an operator has changed them since they were
	// read, or it is too early by the database's clock.
	claimTicks = `
WITH moved AS (
    UPDATE {schedules} s
    SET handled_until = d.until,
        before_gap = CASE
            WHEN d.late THEN coalesce(s.before_gap, s.handled_until)
            WHEN d.until <= s.gap_expires THEN s.before_gap
        END,
        gap_expires = CASE
            WHEN d.late THEN coalesce(s.gap_expires + (d.until - s.handled_until), d.until + interval '7 days')
            WHEN d.until <= s.gap_expires THEN s.gap_expires
        END
    FROM unnest($4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $13::boolean[])
        AS d(name, handled_until, until, due, late)
    WHERE s.name = d.name
        AND s.role = $1
        AND s.term = $2
        AND s.handled_until = d.handled_until
        AND NOT s.paused
        AND d.due <= clock_timestamp()
    RETURNING s.name
), claimed AS (
    INSERT INTO {runs} (schedule, scheduled_for, state, ticks, term, node_id, node_name, started_at, ended_at)
    SELECT
        t.schedule,
        t.scheduled_for,
        t.state,
        t.ticks,
        CASE WHEN t.state = 'running' THEN $2::bigint ELSE 0 END,
        CASE WHEN t.state = 'running' THEN $3::uuid END,
        CASE WHEN t.state = 'running' THEN $8::text ELSE '' END,
        CASE WHEN t.state = 'running' THEN clock_timestamp() END,
        CASE WHEN t.state IN ('missed', 'skipped') THEN clock_timestamp() END
    FROM unnest($9::text[], $10::timestamptz[], $11::text[], $12::bigint[])
        WITH ORDINALITY AS t(schedule, scheduled_for, state, ticks, number)
    JOIN moved m ON m.name = t.schedule
    ORDER BY t.number
    ON CONFLICT (schedule, scheduled_for) DO NOTHING
    RETURNING id, schedule, scheduled_for, state
)
SELECT m.name, c.id, c.scheduled_for, c.state
FROM moved m
LEFT JOIN claimed c ON c.schedule = m.name
ORDER BY c.id`

	// Starts the oldest waiting runs. Unless runs are parallel, a run waiting for its
	// retry keeps later runs waiting. The rows of the schedules are locked: no run starts
	// after a pause has returned.
	startWaiting = `
WITH open AS MATERIALIZED (
    SELECT name, paused
    FROM {schedules}
    WHERE name = ANY ($4::text[]) AND role = $6 AND term = $1
    ORDER BY name
    FOR NO KEY UPDATE
)
UPDATE {runs} r
SET state = 'running',
    term = $1,
    node_id = $2,
    node_name = $3,
    started_at = clock_timestamp(),
    retry_at = NULL,
    error = ''
FROM (
    SELECT w.id
    FROM unnest($4::text[], $5::integer[], $7::boolean[]) AS n(name, most, parallel)
    JOIN open s ON s.name = n.name
    JOIN LATERAL (
        SELECT id, coalesce(retry_at <= clock_timestamp(), true) AS due
        FROM {runs} r
        WHERE schedule = n.name
            AND state = 'waiting'
            AND ` + mayStart + `
            AND (NOT n.parallel OR coalesce(retry_at <= clock_timestamp(), true))
        ORDER BY scheduled_for
        LIMIT n.most
    ) w ON w.due
) w
WHERE r.id = w.id AND r.state = 'waiting'
RETURNING r.id, r.schedule, r.scheduled_for, r.state, r.attempt, r.manual, r.requested_by, r.claimed_at`
)
