package processor

// The statements of operators. Each change is recorded in its transaction, and
// the statement returns the details to record.
const (
	listProcessors = `
SELECT
    p.name,
    p.kind,
    p.role,
    p.log,
    p.status,
    p.cursor_transaction,
    p.cursor_position,
    p.term,
    p.node_id,
    p.node_name,
    p.term > 0 AND EXISTS (
        SELECT
        FROM {leaders} l
        WHERE l.role = p.role AND l.term = p.term AND l.lease_until > clock_timestamp()
    ),
    p.busy,
    p.rebuild,
    p.processed,
    coalesce(g.behind, 0),
    g.measured_at,
    g.waiting_since,
    p.errors,
    p.panics,
    CASE WHEN p.errors > 0 THEN p.failing_transaction END,
    CASE WHEN p.errors > 0 THEN p.failing_position END,
    p.last_error,
    p.last_error_at,
    p.next_attempt_at,
    coalesce(d.open, 0),
    coalesce(d.skipped, 0),
    CASE WHEN p.refused_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute' THEN p.refused_role ELSE '' END,
    CASE WHEN p.refused_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute' THEN p.refused_node ELSE '' END,
    p.stuck_error,
    p.stuck_since,
    coalesce(1000 * extract(epoch FROM clock_timestamp() - p.stuck_since), 0)::double precision,
    p.stuck_errors,
    p.updated_at
FROM {processors} p
LEFT JOIN (
    SELECT processor, count(*) AS open, count(*) FILTER (WHERE skipped_by <> '') AS skipped
    FROM {dead_letters}
    WHERE replayed_at IS NULL AND dismissed_at IS NULL AND (cardinality($1::text[]) = 0 OR processor = ANY ($1))
    GROUP BY processor
) d ON d.processor = p.name
LEFT JOIN {processor_lags} g ON g.processor = p.name
WHERE cardinality($1::text[]) = 0 OR p.name = ANY ($1)
ORDER BY p.name COLLATE "C"`

	recordChange = `
WITH change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail) VALUES ($1, 'processor', $2, $3, $4)
)
SELECT pg_notify($5, '')`

	listChanges = `
SELECT at, changed_by, name, action, detail
FROM {changes}
WHERE kind = 'processor' AND ($1 = '' OR name = $1)
ORDER BY id DESC
LIMIT $2`

	pauseProcessor = `
UPDATE {processors} SET status = 'paused', updated_at = clock_timestamp() WHERE name = $1 RETURNING ''`

	resumeProcessor = `
UPDATE {processors}
SET status = 'active', updated_at = clock_timestamp()
WHERE name = $1 AND status = 'paused'
RETURNING ''`

	// A paused processor stays paused.
	retryProcessor = `
UPDATE {processors}
SET status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1
RETURNING ''`

	// An unassigned transaction id has no position in the log.
	rewindProcessor = `
UPDATE {processors}
SET cursor_transaction = $2::text::xid8,
    cursor_position = $3,
    generation = generation + 1,
    status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1 AND $2::text::xid8 < pg_snapshot_xmax(pg_current_snapshot())
RETURNING $2::text || ':' || $3::bigint`

	forgetDeadLetters = `
DELETE FROM {dead_letters}
WHERE processor = $1 AND (transaction_id, position) > ($2::text::xid8, $3::bigint)`

	rebuildProcessor = `
UPDATE {processors}
SET rebuild = true, updated_at = clock_timestamp()
WHERE name = $1 AND can_rebuild
RETURNING ''`

	// One row with an empty text if no event fails, or none is known to fail.
	skipEvent = `
WITH failing AS (
    SELECT name, failing_transaction, failing_position, last_error, errors, term
    FROM {processors}
    WHERE name = $1
        AND errors > 0
        AND (failing_transaction, failing_position) > (cursor_transaction, cursor_position)
        AND ($3 = '0' OR (failing_transaction, failing_position) = ($3::text::xid8, $4))
    FOR UPDATE
), skipped AS (
    INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, skipped_by)
    SELECT name, failing_transaction, failing_position, last_error, errors, term, $2
    FROM failing
    ON CONFLICT (processor, transaction_id, position) DO UPDATE
    SET error = excluded.error,
        attempts = excluded.attempts,
        term = excluded.term,
        failed_at = clock_timestamp(),
        skipped_by = excluded.skipped_by,
        replay = false,
        replay_failed_at = NULL,
        replayed_at = NULL,
        dismissed_by = '',
        dismissed_at = NULL
)
UPDATE {processors} p
SET cursor_transaction = failing.failing_transaction,
    cursor_position = failing.failing_position,
    generation = generation + 1,
    status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
FROM failing
WHERE p.name = failing.name
RETURNING p.cursor_transaction || ':' || p.cursor_position`

	// The dead letter of a skipped event, unless the cursor is before it.
	wasSkipped = `
SELECT d.id
FROM {dead_letters} d
JOIN {processors} p ON p.name = d.processor
WHERE p.name = $1
    AND (d.transaction_id, d.position) = ($2::text::xid8, $3)
    AND d.skipped_by <> ''
    AND (p.cursor_transaction, p.cursor_position) >= (d.transaction_id, d.position)`

	listDeadLetters = `
SELECT id, transaction_id, position, error, attempts, term, failed_at, skipped_by, replay, replay_by, replay_failed_at, dismissed_by, dismissed_at
FROM {dead_letters}
WHERE processor = $1 AND replayed_at IS NULL
ORDER BY dismissed_at IS NOT NULL, transaction_id, position
LIMIT $2`

	// An earlier request for a replay stays unchanged: the leader can have locked its row.
	replayDeadLetters = `
WITH requested AS (
    UPDATE {dead_letters}
    SET replay = true,
        replay_by = $3,
        replay_requested_at = clock_timestamp(),
        replay_failed_at = NULL,
        dismissed_by = '',
        dismissed_at = NULL
    WHERE processor = $1
        AND replayed_at IS NULL
        AND NOT replay
        AND ($2::bigint[] IS NULL AND dismissed_at IS NULL OR id = ANY ($2))
    RETURNING id
)
SELECT id
FROM requested
UNION ALL
SELECT id
FROM {dead_letters}
WHERE processor = $1 AND replayed_at IS NULL AND replay AND ($2::bigint[] IS NULL OR id = ANY ($2))`

	// Leaders and operators lock dead letters in the order of their ids. Dismissed dead
	// letters are found and stay unchanged. A requested replay is canceled: the leader
	// commits only requested replays.
	dismissDeadLetters = `
WITH found AS (
    SELECT id, dismissed_at IS NULL AS waits
    FROM {dead_letters}
    WHERE processor = $1 AND replayed_at IS NULL AND ($2::bigint[] IS NULL AND dismissed_at IS NULL OR id = ANY ($2))
    ORDER BY id
    FOR UPDATE
), dismissed AS (
    UPDATE {dead_letters} d
    SET dismissed_by = $3, dismissed_at = clock_timestamp(), replay = false
    FROM found
    WHERE d.id = found.id AND found.waits
)
SELECT id, waits
FROM found`

	// Waiting times count up to now if no event was handled since the measurement.
	// Otherwise they come from the measurement, since the events may have been handled.
	readLag = `
SELECT
    p.name,
    led.led,
    coalesce(g.behind, 0),
    coalesce(g.behind_more, false),
    coalesce(g.held, 0),
    coalesce(1000 * extract(epoch FROM
        CASE WHEN led.led AND p.updated_at > g.measured_at THEN g.measured_at ELSE clock_timestamp() END - g.waiting_since
    ), 0)::double precision,
    g.measured_at,
    clock_timestamp()
FROM {processors} p
LEFT JOIN {processor_lags} g ON g.processor = p.name
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT
        FROM {leaders} l
        WHERE l.role = p.role AND l.term = p.term AND l.lease_until > clock_timestamp()
    ) AS led
) led
WHERE cardinality($1::text[]) = 0 OR p.name = ANY ($1)
ORDER BY p.name COLLATE "C"`
)
